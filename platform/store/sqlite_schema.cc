#include "store/sqlite_schema.h"

#include <array>
#include <filesystem>

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

// Each row has a checksum (records.h). The audit log only grows: triggers prevent its records from
// being changed or deleted by mistake.
constexpr std::array<const char*, kSchemaVersion> kSteps = {R"sql(
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (project, name)
) STRICT;
CREATE TABLE project (
  name TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_setting (
  name TEXT PRIMARY KEY,
  cordoned INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE account (
  name TEXT PRIMARY KEY,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE secret (
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE subscription (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  actor TEXT NOT NULL,
  project TEXT NOT NULL,
  action TEXT NOT NULL,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_of_actor ON audit (actor, number);
CREATE INDEX audit_of_project ON audit (project, number);
CREATE TRIGGER audit_rows_never_change BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_rows_stay BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TABLE set_aside (
  number INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  title TEXT NOT NULL,
  fault TEXT NOT NULL,
  source TEXT NOT NULL,
  sequence INTEGER,
  id TEXT,
  project TEXT,
  name TEXT,
  idempotency_key TEXT,
  document BLOB,
  checksum INTEGER NOT NULL
) STRICT;
)sql",
                                                            R"sql(
CREATE TABLE object (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  document BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (kind, id),
  UNIQUE (kind, project, name)
) STRICT;
)sql",
                                                            R"sql(
ALTER TABLE job ADD COLUMN facts BLOB;
)sql",
                                                            R"sql(
CREATE INDEX audit_of_time ON audit (time, number);
CREATE INDEX audit_of_action ON audit (action, number);
)sql"};

Result<void> run_sqlite_migrations(SqliteDatabase& database, Migrations migrations) {
  const int version = version_of(migrations);
  MUSTER_CHECK(database.execute("BEGIN IMMEDIATE"));
  // Read again, now that other processes cannot change it.
  const Result<int> from = schema_version(database, version);
  Result<void> done = from ? Result<void>() : Result<void>(from.error());
  for (int step = from ? *from : version; done && step < version; ++step) {
    done = database.execute(migrations[static_cast<size_t>(step)]);
  }
  if (done && *from < version) {
    done = database.execute("PRAGMA user_version = " + std::to_string(version));
  }
  if (done) done = database.execute("COMMIT");
  if (!done) (void)database.execute("ROLLBACK");
  return done;
}

/// Written under another name and renamed: an existing copy is complete.
Result<void> back_up_sqlite(const SqliteDatabase& database, const std::string& copy) {
  const std::string partial = copy + ".partial";
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  {
    MUSTER_TRY(SqliteDatabase target, SqliteDatabase::open(partial, SqliteDatabase::Mode::kMake));
    MUSTER_CHECK(database.copy_to(target));
    MUSTER_CHECK(target.execute("PRAGMA journal_mode = DELETE"));  // one file, without -wal
  }
  std::error_code failed;
  std::filesystem::rename(partial, copy, failed);
  if (failed) return base::system_error("cannot create the backup '" + copy + "'", failed.value());
  return {};
}

}  // namespace

const Migrations kSqliteMigrations(kSteps);

Error unknown_schema(const std::string& database, int version, int newest) {
  return {.code = ErrorCode::kConflict,
          .what = database + " has version " + std::to_string(version) +
                  ", and this release reads versions up to " + std::to_string(newest),
          .advice = "use the release that wrote it, or another database"};
}

Result<int> schema_version(SqliteDatabase& database, int newest) {
  MUSTER_TRY(const int64_t stored, database.number("PRAGMA user_version"));
  const auto version = static_cast<int>(stored);
  if (version >= 0 && version <= newest) return version;
  return unknown_schema("the database '" + database.file() + "'", version, newest);
}

Result<void> migrate(SqliteDatabase& database, Migrations migrations) {
  MUSTER_TRY(const int found, schema_version(database, version_of(migrations)));
  if (found == version_of(migrations)) return {};
  return run_sqlite_migrations(database, migrations);
}

Result<void> migrate_with_backup(SqliteDatabase& database, Migrations migrations) {
  MUSTER_TRY(const int found, schema_version(database, version_of(migrations)));
  if (found == version_of(migrations)) return {};
  if (found > 0) {
    MUSTER_CHECK(back_up_sqlite(database, database.file() + ".version-" + std::to_string(found)));
  }
  return migrate(database, migrations);
}

namespace {

TableColumn::Type type_of(std::string_view declared) {
  if (declared == "INTEGER") return TableColumn::Type::kNumber;
  return declared == "TEXT" ? TableColumn::Type::kText : TableColumn::Type::kBytes;
}

}  // namespace

std::string Table::column_list() const {
  std::string list;
  for (const TableColumn& column : columns) list += (list.empty() ? "" : ", ") + column.name;
  return list;
}

Result<std::vector<Table>> tables_of(SqliteDatabase& database) {
  std::vector<Table> tables;
  MUSTER_CHECK(database.each_row(
      "SELECT t.name, c.name, c.type FROM sqlite_master t, pragma_table_info(t.name) c"
      " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid",
      [&](const SqliteStatement& row) -> Result<void> {
        if (tables.empty() || tables.back().name != row.bytes(0)) {
          tables.push_back({.name = std::string(row.bytes(0)), .columns = {}});
        }
        tables.back().columns.push_back(
            {.name = std::string(row.bytes(1)), .type = type_of(row.bytes(2))});
        return {};
      }));
  return tables;
}

}  // namespace muster::store
