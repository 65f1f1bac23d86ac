"""Runs migrations over the connection the daemon opened; there is no offline mode."""

from alembic import context

from redrived.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
