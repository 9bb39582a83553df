"""The MSE exponential mechanism: levels drawn by squared error, and the law of one draw."""
