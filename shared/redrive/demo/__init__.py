"""A lively workload of all five scenarios, for `redrive demo`.

`config.toml` and `report.yaml` are what runs, `handlers` the Python jobs, `service` the flaky
server that the HTTP jobs talk to, `workload` what keeps enqueuing.
"""
