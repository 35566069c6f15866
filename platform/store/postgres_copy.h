// All rows of a store from PostgreSQL to SQLite and back. Both have the same tables and columns,
// and which those are is asked of the SQLite database: so this holds for every version.
//
// I/O. The caller begins and ends the transaction of the PostgreSQL side.
#pragma once

#include "store/postgres_connection.h"
#include "store/sqlite_database.h"

namespace muster::store {

/// Into tables that are there and empty.
Result<void> copy_to_sqlite(PostgresConnection& from, SqliteDatabase& to);
Result<void> copy_to_postgres(SqliteDatabase& from, PostgresConnection& to);

}  // namespace muster::store
