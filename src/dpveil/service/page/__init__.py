"""The page of the service: photos are dropped, looked at, released and downloaded in a browser."""
