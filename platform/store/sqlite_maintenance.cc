#include "store/sqlite_maintenance.h"

#include "store/document_check.h"
#include "store/sqlite_schema.h"
#include "store/sqlite_tables.h"
#include "store/summary_counts.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

Result<bool> has_sqlite_table(SqliteDatabase& database, const std::string& name) {
  MUSTER_TRY(
      const int64_t count,
      database.number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '" +
                      name + "'"));
  return count > 0;
}

Result<void> check_sqlite_documents(SqliteDatabase& database, Faults& faults) {
  for (const DocumentTable& table : kDocumentTables) {
    MUSTER_TRY(const bool is_there, has_sqlite_table(database, table.name));
    if (!is_there) continue;  // of a later version
    MUSTER_CHECK(database.each_row(table.query(), [&](const SqliteStatement& row) -> Result<void> {
      faults.check(table, row.bytes(0), row.bytes(1));
      return {};
    }));
  }
  return {};
}

Result<void> check_pages(SqliteDatabase& database, Faults& faults) {
  return database.each_row("PRAGMA integrity_check",
                           [&](const SqliteStatement& row) -> Result<void> {
                             if (row.bytes(0) != "ok") faults.add(std::string(row.bytes(0)));
                             return {};
                           });
}

/// What is wrong with it, also where that keeps it from being read on.
Faults faults_of(SqliteDatabase& database) {
  Faults faults;
  if (const auto done = check_pages(database, faults); !done) faults.add(done.error().what);
  if (const auto done = check_sqlite_documents(database, faults); !done)
    faults.add(done.error().what);
  return faults;
}

Error no_backup(const std::filesystem::path& file, const std::string& why) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + file.string() + "' is no backup: " + why,
          .advice = "name a file that `muster store backup` wrote"};
}

Result<bool> is_empty(SqliteDatabase& database) {
  MUSTER_TRY(const std::vector<Table> tables, tables_of(database));
  for (const Table& table : tables) {
    MUSTER_TRY(const int64_t rows, database.number("SELECT count(*) FROM " + table.name));
    if (rows > 0) return false;
  }
  return true;
}

/// Nobody else can open it until the connection is closed.
Result<void> take_for_oneself(SqliteDatabase& database) {
  MUSTER_CHECK(database.execute("PRAGMA locking_mode = EXCLUSIVE"));
  Result<void> done = database.execute("BEGIN EXCLUSIVE");
  if (done) return database.execute("COMMIT");
  if (done.error().code != ErrorCode::kUnavailable) return done;
  return Error{.code = ErrorCode::kConflict,
               .what = "a server uses the database '" + database.file() + "'",
               .advice = "stop it first"};
}

}  // namespace

Result<StoreSummary> summary_of(SqliteDatabase& database) {
  StoreSummary summary;
  MUSTER_TRY(summary.schema_version, schema_version(database));
  for (const auto& [table, count] : counts_in(summary)) {
    MUSTER_TRY(const bool is_there, has_sqlite_table(database, table));
    if (!is_there) continue;
    MUSTER_TRY(const int64_t rows, database.number(std::string("SELECT count(*) FROM ") + table));
    *count = static_cast<uint64_t>(rows);
  }
  return summary;
}

Result<SqliteDatabase> open_backup(const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase stored, SqliteDatabase::open(file, SqliteDatabase::Mode::kReadOnly));
  const Result<int> version = schema_version(stored);
  if (!version && version.error().code == ErrorCode::kConflict) return version.error();
  if (!version) return no_backup(file, version.error().what);
  if (*version == 0) return no_backup(file, "it holds no store");
  MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::temporary());
  MUSTER_CHECK(stored.copy_to(copy));
  if (std::vector<std::string> faults = faults_of(copy).take(); !faults.empty()) {
    return no_backup(file, faults.front());
  }
  MUSTER_CHECK(migrate(copy));
  return copy;
}

Result<void> copy_out_of_sqlite(const std::filesystem::path& file, SqliteDatabase& copy) {
  MUSTER_TRY(SqliteDatabase stored, SqliteDatabase::open(file, SqliteDatabase::Mode::kReadOnly));
  MUSTER_TRY(const int version, schema_version(stored));
  if (version == 0) {
    return Error{.code = ErrorCode::kNotFound, .what = "'" + file.string() + "' holds no store"};
  }
  MUSTER_CHECK(stored.copy_to(copy));
  return migrate(copy);
}

Result<void> copy_into_sqlite(SqliteDatabase& backup, const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase target, SqliteDatabase::open(file, SqliteDatabase::Mode::kMake));
  MUSTER_CHECK(take_for_oneself(target));
  MUSTER_CHECK(schema_version(target));
  MUSTER_TRY(const bool has_room, is_empty(target));
  if (!has_room) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "the database '" + file.string() + "' is not empty",
                 .advice = "move it away first: nothing is overwritten"};
  }
  return backup.copy_to(target);
}

Result<StoreCheck> check_sqlite(const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase database, SqliteDatabase::open(file, SqliteDatabase::Mode::kReadOnly));
  // Of a newer version nothing can be said; one that is damaged is what this is for.
  Result<StoreSummary> summary = summary_of(database);
  if (!summary && summary.error().code == ErrorCode::kConflict) return summary.error();
  StoreCheck check;
  check.faults = faults_of(database).take();
  if (summary) {
    check.summary = *summary;
  } else if (check.faults.empty()) {
    return summary.error();
  }
  return check;
}

}  // namespace muster::store
