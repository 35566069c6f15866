// The tables of the store in PostgreSQL: those of SQLite under the same version (sqlite_schema.h),
// and two more with one row each: schema_version and leader. Also copies all rows to SQLite and
// back.
//
// I/O.
#pragma once

#include <filesystem>
#include <string>

#include "store/postgres_connection.h"
#include "store/sqlite_database.h"
#include "store/sqlite_schema.h"

namespace muster::store {

extern const Migrations kPostgresMigrations;

/// 0: the database has no schema.
Result<int> schema_version(PostgresConnection& connection);

/// Runs all missing steps in one transaction, after a backup (a SQLite file) of a database that is
/// not empty into `backup_folder`. kConflict: the version is unknown, or a server leads on the
/// older version.
Result<void> migrate(PostgresConnection& connection, Migrations migrations,
                     const std::filesystem::path& backup_folder);
/// The same, but false, and not an error, if another session leads on the older version.
Result<bool> migrate_unless_led(PostgresConnection& connection, Migrations migrations,
                                const std::filesystem::path& backup_folder);

/// SQL: the two keys of the advisory lock that the leader's session holds, as pg_locks shows them.
/// The second is the table's own number, so that each schema of a database has its own leader.
inline constexpr const char* kLeaderLock =
    "(1297437524::int8 << 32) | 'leader'::regclass::oid::int8";
inline constexpr const char* kLeaderLockHolders =
    "SELECT l.pid::int8, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.classid = 1297437524 AND l.objid = 'leader'::regclass::oid"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

// Both databases have the same tables and columns, whose names are read from the SQLite database:
// so these functions work for every version. The caller begins and ends the transaction of
// PostgreSQL.

/// Copies into existing empty tables.
Result<void> copy_to_sqlite(PostgresConnection& from, SqliteDatabase& to);
Result<void> copy_to_postgres(SqliteDatabase& from, PostgresConnection& to);

}  // namespace muster::store
