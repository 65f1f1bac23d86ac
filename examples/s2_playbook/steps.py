"""The Python step of the playbook."""


def total(amounts):
    return {"total": sum(amounts)}
