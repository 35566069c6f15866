// The tables of the database, what each version changed, and how an older one is brought up to
// date. PostgreSQL has the same tables (postgres_schema.h), under the same version.
//
// I/O.
#pragma once

#include <array>

#include "store/sqlite_database.h"

namespace muster::store {

inline constexpr int kSchemaVersion = 5;

/// The statements that make version n + 1 of version n; version 0 is an empty database.
extern const std::array<const char*, kSchemaVersion> kSqliteMigrations;

/// kConflict: not among those that this Muster knows.
Result<int> schema_version(SqliteDatabase& database);

/// All steps from what it is to `version` in one transaction. Nothing is changed where one fails.
Result<void> migrate(SqliteDatabase& database, int version = kSchemaVersion);

/// The same to the present version, and before that, where there is something to lose, a copy of
/// the database beside it: muster.db.version-2, 0600.
Result<void> migrate_with_backup(SqliteDatabase& database);

/// That `version` is newer than what this Muster knows, and what to do.
base::Error newer_schema(const std::string& database, int version);

}  // namespace muster::store
