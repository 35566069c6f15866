// The tables of the SQLite database, their version, and the migration of older databases.
// PostgreSQL has the same tables under the same version (postgres_schema.h).
//
// I/O.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "store/sqlite_database.h"

namespace muster::store {

inline constexpr int kSchemaVersion = 4;

/// The statements that turn version n into version n + 1; version 0 is an empty database. A change
/// of the tables appends statements and increments kSchemaVersion.
using Migrations = std::span<const char* const>;
extern const Migrations kSqliteMigrations;

/// The version after the last step.
inline int version_of(Migrations migrations) {
  return static_cast<int>(migrations.size());
}

/// kConflict: the version is newer than `newest`, or invalid.
Result<int> schema_version(SqliteDatabase& database, int newest = kSchemaVersion);

/// Runs all missing steps in one transaction. If one fails, nothing is changed.
Result<void> migrate(SqliteDatabase& database, Migrations migrations = kSqliteMigrations);

/// The same, but first copies a database that is not empty to muster.db.version-2 beside it (0600).
Result<void> migrate_with_backup(SqliteDatabase& database,
                                 Migrations migrations = kSqliteMigrations);

/// The error for a database whose version this release does not support.
base::Error unknown_schema(const std::string& database, int version, int newest = kSchemaVersion);

// The tables that a SQLite database has, read from the database itself: code that copies rows need
// not know them.

struct TableColumn {
  std::string name;
  enum class Type { kNumber, kText, kBytes } type = Type::kBytes;
};

struct Table {
  std::string name;
  std::vector<TableColumn> columns;

  /// "sequence, id, project": all columns.
  std::string column_list() const;
};

/// By name.
Result<std::vector<Table>> tables_of(SqliteDatabase& database);

}  // namespace muster::store
