"""The service: plans and releases over HTTP, with a budget for each subject (`dpveil serve`)."""
