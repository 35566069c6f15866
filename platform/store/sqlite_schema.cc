#include "store/sqlite_schema.h"

#include <sqlite3.h>

#include <vector>

#include "store/document.h"
#include "store/records.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

// Version 2: projects and what was set for nodes; a job's name was one of all projects.
// Version 3: a job's name is one of its project's; accounts, and the audit log, which only grows:
// its triggers keep a mistaken statement from taking something away.
// Version 4: who is told of what happens to jobs, and what is still to be told.
// Version 5: a checksum of each row (records.h), and the table of records that were set aside. The
// checksums of the rows that are there take their content as it is.
const std::array<const char*, kSchemaVersion> kSqliteMigrations{
    R"sql(
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  UNIQUE (project, name)
) STRICT;
)sql",
    R"sql(
ALTER TABLE job RENAME TO old_job;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL
) STRICT;
INSERT INTO job SELECT sequence, id, name, idempotency_key, document FROM old_job;
DROP TABLE old_job;
CREATE TABLE project (
  name TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_setting (
  name TEXT PRIMARY KEY,
  cordoned INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    R"sql(
ALTER TABLE job RENAME TO old_job;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  UNIQUE (project, name)
) STRICT;
INSERT INTO job SELECT sequence, id, project_of_job(document), name, idempotency_key, document
  FROM old_job;
DROP TABLE old_job;
CREATE TABLE account (
  name TEXT PRIMARY KEY,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE secret (
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  document BLOB NOT NULL,
  PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  actor TEXT NOT NULL,
  project TEXT NOT NULL,
  action TEXT NOT NULL,
  document BLOB NOT NULL
) STRICT;
CREATE INDEX audit_of_actor ON audit (actor, number);
CREATE INDEX audit_of_project ON audit (project, number);
CREATE TRIGGER audit_keeps_what_it_says BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_keeps_what_it_has BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
)sql",
    R"sql(
CREATE TABLE subscription (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  id TEXT PRIMARY KEY,
  document BLOB NOT NULL
) STRICT;
)sql",
    R"sql(
ALTER TABLE job ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE project ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE secret ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE subscription ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node_setting ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE job SET checksum = row_checksum(id, project, name, document);
UPDATE project SET checksum = row_checksum(name, CAST(sequence AS TEXT), document);
UPDATE account SET checksum = row_checksum(name, document);
UPDATE token SET checksum = row_checksum(id, document);
UPDATE secret SET checksum = row_checksum(project, name, document);
UPDATE subscription SET checksum = row_checksum(id, document);
UPDATE delivery SET checksum = row_checksum(id, document);
UPDATE node_setting SET checksum = row_checksum(name, CAST(cordoned AS TEXT));
DROP TRIGGER audit_keeps_what_it_says;
UPDATE audit SET checksum = row_checksum(CAST(time AS TEXT), actor, project, action, document);
CREATE TRIGGER audit_keeps_what_it_says BEFORE UPDATE ON audit
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
)sql"};

namespace {

/// The SQL function project_of_job(document): what SQL cannot read itself.
void project_of_job(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const std::string_view document(static_cast<const char*>(sqlite3_value_blob(arguments[0])),
                                  static_cast<size_t>(sqlite3_value_bytes(arguments[0])));
  const auto job = from_document<job::Job>(document);
  if (!job) {
    sqlite3_result_error(context, job.error().what.c_str(), -1);
    return;
  }
  const std::string& project = job->spec.project;
  sqlite3_result_text(context, project.data(), static_cast<int>(project.size()), SQLITE_TRANSIENT);
}

/// The SQL function row_checksum(column, ...).
void row_checksum(sqlite3_context* context, int count, sqlite3_value** arguments) {
  std::vector<std::string_view> columns;
  for (int i = 0; i < count; ++i) {
    columns.emplace_back(static_cast<const char*>(sqlite3_value_blob(arguments[i])),
                         static_cast<size_t>(sqlite3_value_bytes(arguments[i])));
  }
  sqlite3_result_int64(context, checksum_of(columns));
}

Result<void> add_functions(SqliteDatabase& database) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  constexpr int kAnyNumber = -1;
  const auto add = [&](const char* name, int count, auto* function) {
    return sqlite3_create_function(database.raw(), name, count, kFlags, nullptr, function, nullptr,
                                   nullptr);
  };
  if (add("project_of_job", 1, project_of_job) != SQLITE_OK ||
      add("row_checksum", kAnyNumber, row_checksum) != SQLITE_OK) {
    return database.error("the functions of a migration");
  }
  return {};
}

Result<int> stored_version(SqliteDatabase& database) {
  MUSTER_TRY(const int64_t version, database.number("PRAGMA user_version"));
  return static_cast<int>(version);
}

Result<void> run_sqlite_migrations(SqliteDatabase& database, int version) {
  MUSTER_CHECK(database.execute("BEGIN IMMEDIATE"));
  // Read again now that nobody else can change it.
  Result<int> from = schema_version(database);
  Result<void> done = from ? Result<void>() : Result<void>(from.error());
  for (int step = from ? *from : version; done && step < version; ++step) {
    done = database.execute(kSqliteMigrations.at(static_cast<size_t>(step)));
  }
  if (done && *from < version) {
    done = database.execute("PRAGMA user_version = " + std::to_string(version));
  }
  if (done) done = database.execute("COMMIT");
  if (!done) (void)database.execute("ROLLBACK");
  return done;
}

/// Written under another name and renamed: a copy that is there is whole.
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
  if (failed) return base::system_error("cannot make the backup '" + copy + "'", failed.value());
  return {};
}

}  // namespace

Error newer_schema(const std::string& database, int version) {
  return {.code = ErrorCode::kConflict,
          .what = database + " is of version " + std::to_string(version) +
                  ", and this Muster reads up to version " + std::to_string(kSchemaVersion),
          .advice = "use the newer Muster that wrote it, or another database"};
}

Result<int> schema_version(SqliteDatabase& database) {
  MUSTER_TRY(const int version, stored_version(database));
  if (version > kSchemaVersion || version < 0) {
    return newer_schema("the database '" + database.file() + "'", version);
  }
  return version;
}

Result<void> migrate(SqliteDatabase& database, int version) {
  MUSTER_TRY(const int found, schema_version(database));
  if (found >= version) return {};
  MUSTER_CHECK(add_functions(database));
  return run_sqlite_migrations(database, version);
}

Result<void> migrate_with_backup(SqliteDatabase& database) {
  MUSTER_TRY(const int found, schema_version(database));
  if (found == kSchemaVersion) return {};
  if (found > 0) {
    MUSTER_CHECK(back_up_sqlite(database, database.file() + ".version-" + std::to_string(found)));
  }
  return migrate(database);
}

}  // namespace muster::store
