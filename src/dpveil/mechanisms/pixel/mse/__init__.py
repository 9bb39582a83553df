"""The MSE exponential mechanism: levels drawn by their squared error, and the law of one draw."""
