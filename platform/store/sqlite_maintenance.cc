#include "store/sqlite_maintenance.h"

#include "base/text.h"
#include "store/records.h"
#include "store/sqlite_schema.h"

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

Result<void> each_sqlite_record(SqliteDatabase& database, const RecordKind& kind,
                                const std::function<void(const RecordRow&)>& take) {
  MUSTER_TRY(const bool is_there, has_sqlite_table(database, kind.table));
  if (!is_there) return {};  // the database is empty
  return database.each_row(kind.query(), [&](const SqliteStatement& row) -> Result<void> {
    take(row.record(kind.key.size()));
    return {};
  });
}

Result<void> check_sqlite_records(SqliteDatabase& database, Faults& faults) {
  const auto check = [&](const RecordKind& kind) {
    return each_sqlite_record(database, kind,
                              [&](const RecordRow& row) { faults.check(kind, row); });
  };
  for (const RecordKind& kind : kRecordKinds) MUSTER_CHECK(check(kind));
  return check(kAuditKind);
}

Result<void> check_pages(SqliteDatabase& database, Faults& faults) {
  return database.each_row("PRAGMA integrity_check",
                           [&](const SqliteStatement& row) -> Result<void> {
                             if (row.bytes(0) != "ok") faults.add(std::string(row.bytes(0)));
                             return {};
                           });
}

/// The faults of the database, even if it cannot be read to the end. An error: it cannot be opened,
/// whatever its content.
Result<Faults> faults_of(SqliteDatabase& database) {
  Faults faults;
  for (const auto check : {check_pages, check_sqlite_records}) {
    const Result<void> done = check(database, faults);
    if (done) continue;
    if (done.error().code != ErrorCode::kInternal) return done.error();
    faults.add(done.error().what);
  }
  return faults;
}

Result<void> list_set_aside_in_sqlite(SqliteDatabase& database,
                                      std::vector<std::string>& sentences) {
  MUSTER_TRY(const bool is_there, has_sqlite_table(database, "set_aside"));
  if (!is_there) return {};
  return database.each_row(kSetAsideQuery, [&](const SqliteStatement& row) -> Result<void> {
    sentences.push_back(set_aside_sentence(row.bytes(0), row.bytes(1), row.number(2)));
    return {};
  });
}

Error no_backup(const std::filesystem::path& file, const std::string& why) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + file.string() + "' is not a backup: " + why,
          .advice =
              "give a file written by `muster store backup`; in a backup with an unreadable "
              "record, `muster store set-aside NAME --store " +
              base::shell_quoted(file.string()) + "` sets the record aside"};
}

Result<bool> is_empty(SqliteDatabase& database) {
  MUSTER_TRY(const std::vector<Table> tables, tables_of(database));
  for (const Table& table : tables) {
    MUSTER_TRY(const int64_t rows, database.number("SELECT count(*) FROM " + table.name));
    if (rows > 0) return false;
  }
  return true;
}

/// Other processes cannot open it until the connection is closed.
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
  if (*version == 0) return no_backup(file, "it contains no store");
  MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::temporary());
  MUSTER_CHECK(stored.copy_to(copy));
  MUSTER_TRY(Faults faults, faults_of(copy));
  if (const std::vector<std::string> found = faults.take(); !found.empty()) {
    return no_backup(file, found.front());
  }
  MUSTER_CHECK(migrate(copy));
  return copy;
}

Result<void> copy_out_of_sqlite(const std::filesystem::path& file, SqliteDatabase& copy) {
  MUSTER_TRY(SqliteDatabase stored, SqliteDatabase::open(file, SqliteDatabase::Mode::kReadOnly));
  MUSTER_TRY(const int version, schema_version(stored));
  if (version == 0) {
    return Error{.code = ErrorCode::kNotFound, .what = "'" + file.string() + "' contains no store"};
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
                 .advice = "move it away first: a restore never overwrites data"};
  }
  return backup.copy_to(target);
}

namespace {

Result<void> move_in_sqlite(SqliteDatabase& database, const UnreadableRecords::Found& found,
                            base::Time now) {
  const MoveStatements sql = move_statements(*found.kind, '?');
  MUSTER_TRY(SqliteStatement insert, database.prepare(sql.insert));
  MUSTER_TRY(SqliteStatement remove, database.prepare(sql.remove));
  int parameter = 0;
  for (const std::string& column : found.key) {
    ++parameter;
    insert.text(parameter, column);
    remove.text(parameter, column);
  }
  const std::string title = found.record.title();
  insert.number(parameter + 1, now.time_since_epoch().count())
      .text(parameter + 2, title)
      .text(parameter + 3, found.record.fault);
  MUSTER_CHECK(insert.run());
  MUSTER_CHECK(remove.run());
  MUSTER_TRY(const int64_t removed, database.number("SELECT changes()"));
  if (removed == 1) return {};
  return Error{
      .code = ErrorCode::kInternal,
      .what = "the row of " + title + " cannot be removed from '" + database.file() + "'",
      .advice = "move the file away, and restore the last backup with `muster store restore`"};
}

}  // namespace

Result<void> set_aside_in_sqlite(const std::filesystem::path& file, const std::string& name,
                                 base::Time now) {
  MUSTER_TRY(SqliteDatabase database, SqliteDatabase::open(file, SqliteDatabase::Mode::kWrite));
  MUSTER_CHECK(take_for_oneself(database));
  MUSTER_CHECK(migrate_with_backup(database));
  UnreadableRecords records;
  for (const RecordKind& kind : kRecordKinds) {
    MUSTER_CHECK(each_sqlite_record(database, kind,
                                    [&](const RecordRow& row) { records.look_at(kind, row); }));
  }
  MUSTER_TRY(const UnreadableRecords::Found found, records.choose(name));
  MUSTER_CHECK(database.execute("BEGIN IMMEDIATE"));
  // An index may contain the former name of a damaged row, and SQLite would not find the entry to
  // remove. If two rows have the same name now, the index is not rebuilt.
  (void)database.execute(std::string("REINDEX ") + found.kind->table);
  Result<void> done = move_in_sqlite(database, found, now);
  if (done) return database.execute("COMMIT");
  (void)database.execute("ROLLBACK");
  return done;
}

Result<StoreCheck> check_sqlite(const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase database, SqliteDatabase::open(file, SqliteDatabase::Mode::kReadOnly));
  // An unknown version cannot be read; a damaged database can be.
  Result<StoreSummary> summary = summary_of(database);
  if (!summary && summary.error().code == ErrorCode::kConflict) return summary.error();
  StoreCheck check;
  MUSTER_TRY(Faults faults, faults_of(database));
  if (summary && summary->schema_version == 0) {
    faults.add("the database '" + file.string() + "' is empty: it contains no store");
  }
  check.faults = faults.take();
  if (const auto listed = list_set_aside_in_sqlite(database, check.set_aside); !listed) {
    check.faults.push_back(listed.error().what);
  }
  if (summary) {
    check.summary = *summary;
  } else if (check.faults.empty()) {
    return summary.error();
  }
  return check;
}

}  // namespace muster::store
