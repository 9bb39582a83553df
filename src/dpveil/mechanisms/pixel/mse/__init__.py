"""The MSE exponential mechanism: levels drawn by squared error, and the distribution of one draw."""
