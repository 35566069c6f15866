// The tables of the store in PostgreSQL: those of SQLite under the same version (sqlite_schema.h),
// and two of its own: schema_version, and leader, with one row each.
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

/// 0: there is none.
Result<int> schema_version(PostgresConnection& connection);

/// All steps that are missing, in one transaction; before that, where there is something to lose,
/// a backup (a SQLite file) into `backup_folder`. kConflict: the version is not one of the
/// list, or a server leads on the older one.
Result<void> migrate(PostgresConnection& connection, Migrations migrations,
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

// All rows of a store from PostgreSQL to SQLite and back. Both have the same tables and columns,
// and which those are is asked of the SQLite database: so this holds for every version.
//
// I/O. The caller begins and ends the transaction of the PostgreSQL side.

/// Into tables that are there and empty.
Result<void> copy_to_sqlite(PostgresConnection& from, SqliteDatabase& to);
Result<void> copy_to_postgres(SqliteDatabase& from, PostgresConnection& to);

}  // namespace muster::store
