// The tables of the database under their version, and how an older database is brought up to date.
// PostgreSQL has the same tables (postgres_schema.h), under the same version.
//
// I/O.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "store/sqlite_database.h"

namespace muster::store {

inline constexpr int kSchemaVersion = 1;

/// The statements that make version n + 1 of version n; version 0 is an empty database. A change of
/// the tables appends its statements and raises kSchemaVersion.
using Migrations = std::span<const char* const>;
extern const Migrations kSqliteMigrations;

/// The version that the last step makes.
inline int version_of(Migrations migrations) {
  return static_cast<int>(migrations.size());
}

/// kConflict: the version is past `newest`, or is none.
Result<int> schema_version(SqliteDatabase& database, int newest = kSchemaVersion);

/// Takes all steps that are missing in one transaction. Nothing is changed where one fails.
Result<void> migrate(SqliteDatabase& database, Migrations migrations = kSqliteMigrations);

/// The same, and before that, where there is something to lose, a copy of the database beside it:
/// muster.db.version-2, 0600.
Result<void> migrate_with_backup(SqliteDatabase& database,
                                 Migrations migrations = kSqliteMigrations);

/// The refusal of a database whose version this Muster does not know, and what to do.
base::Error unknown_schema(const std::string& database, int version, int newest = kSchemaVersion);

// What tables a SQLite database has, as it says itself: whoever copies rows need not know them.
//
// I/O.

struct TableColumn {
  std::string name;
  enum class Type { kNumber, kText, kBytes } type = Type::kBytes;
};

struct Table {
  std::string name;
  std::vector<TableColumn> columns;

  /// "sequence, id, project": of every column.
  std::string column_list() const;
};

/// By name.
Result<std::vector<Table>> tables_of(SqliteDatabase& database);

}  // namespace muster::store
