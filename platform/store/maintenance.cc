#include "store/maintenance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/unique_fd.h"
#include "store/postgres_schema.h"
#include "store/postgres_store.h"
#include "store/records.h"
#include "store/sqlite_maintenance.h"
#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// --- PostgreSQL

using Connection = std::unique_ptr<PostgresConnection>;

Result<Connection> connect(const std::string& url) {
  MUSTER_TRY(const PostgresUrl parsed, PostgresUrl::parse(url));
  return PostgresConnection::open(parsed, "muster store");
}

/// Reads a consistent snapshot, however long it takes.
Result<Connection> connect_to_read(const std::string& url) {
  MUSTER_TRY(Connection connection, connect(url));
  MUSTER_TRY(const int version, schema_version(*connection));
  const std::string database = "the database " + connection->url().shown;
  if (version > kSchemaVersion) return unknown_schema(database, version);
  if (version == 0)
    return Error{.code = ErrorCode::kNotFound, .what = database + " contains no store"};
  MUSTER_CHECK(
      connection->execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                          "SET LOCAL statement_timeout = 0"));
  return connection;
}

/// An empty database has no tables.
Result<bool> has_postgres_table(PostgresConnection& connection, const char* name) {
  MUSTER_TRY(const PostgresRows found, connection.query("SELECT to_regclass($1::text) IS NOT NULL",
                                                        PostgresParameters().text(name)));
  return found.number(0, 0) == 1;
}

Result<StoreSummary> postgres_summary_of(PostgresConnection& connection) {
  StoreSummary summary;
  MUSTER_TRY(summary.schema_version, schema_version(connection));
  for (const auto& [table, count] : counts_in(summary)) {
    MUSTER_TRY(const bool is_there, has_postgres_table(connection, table));
    if (!is_there) continue;
    MUSTER_TRY(const PostgresRows rows,
               connection.query(std::string("SELECT count(*) FROM ") + table));
    *count = static_cast<uint64_t>(rows.number(0, 0));
  }
  return summary;
}

Result<void> each_postgres_record(PostgresConnection& connection, const RecordKind& kind,
                                  const std::function<void(const RecordRow&)>& take) {
  MUSTER_TRY(const bool is_there, has_postgres_table(connection, kind.table));
  if (!is_there) return {};
  return connection.each_row(kind.query(), [&](const PostgresRows& row) -> Result<void> {
    take(row.record(0, kind.key.size()));
    return {};
  });
}

Result<void> check_postgres_records(PostgresConnection& connection, Faults& faults) {
  const auto check = [&](const RecordKind& kind) {
    return each_postgres_record(connection, kind,
                                [&](const RecordRow& row) { faults.check(kind, row); });
  };
  for (const RecordKind& kind : kRecordKinds) MUSTER_CHECK(check(kind));
  return check(kAuditKind);
}

Result<void> list_set_aside_in_postgres(PostgresConnection& connection,
                                        std::vector<std::string>& sentences) {
  MUSTER_TRY(const bool is_there, has_postgres_table(connection, "set_aside"));
  if (!is_there) return {};
  return connection.each_row(kSetAsideQuery, [&](const PostgresRows& row) -> Result<void> {
    sentences.push_back(set_aside_sentence(row.bytes(0, 0), row.bytes(0, 1), row.number(0, 2)));
    return {};
  });
}

Result<void> move_in_postgres(PostgresConnection& connection, const UnreadableRecords::Found& found,
                              base::Time now) {
  const MoveStatements sql = move_statements(*found.kind, '$');
  PostgresParameters key;
  PostgresParameters all;
  for (const std::string& column : found.key) {
    key.text(column);
    all.text(column);
  }
  all.number(now.time_since_epoch().count()).text(found.record.title()).text(found.record.fault);
  MUSTER_TRY([[maybe_unused]] const PostgresRows inserted, connection.query(sql.insert, all));
  MUSTER_TRY([[maybe_unused]] const PostgresRows removed, connection.query(sql.remove, key));
  return {};
}

Result<void> refuse_if_a_server_leads(PostgresConnection& connection) {
  MUSTER_TRY(const PostgresRows lock,
             connection.query(std::string("SELECT pg_try_advisory_lock(") + kLeaderLock + ")"));
  if (lock.number(0, 0) == 1) return {};
  // The database ends the session of a server that has just stopped a moment later.
  MUSTER_CHECK(connection.query("SET lock_timeout = '2s'"));
  const auto waited = connection.query(std::string("SELECT pg_advisory_lock(") + kLeaderLock + ")");
  MUSTER_CHECK(connection.query("RESET lock_timeout"));
  if (waited) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "a server leads on the database " + connection.url().shown,
               .advice = "stop it first"};
}

Result<void> refuse_what_is_not_empty(PostgresConnection& connection) {
  MUSTER_TRY(const StoreSummary found, postgres_summary_of(connection));
  MUSTER_TRY(const PostgresRows nodes, connection.query("SELECT count(*) FROM node_setting"));
  if (found == StoreSummary{.schema_version = found.schema_version} && nodes.number(0, 0) == 0) {
    return {};
  }
  return Error{.code = ErrorCode::kConflict,
               .what = "the database " + connection.url().shown + " is not empty",
               .advice = "choose another database or schema: a restore never overwrites data"};
}

/// Copies into an empty database, which gets the present schema.
Result<void> copy_out_of_postgres(const std::string& url, SqliteDatabase& copy) {
  MUSTER_TRY(const Connection connection, connect_to_read(url));
  MUSTER_TRY(const int version, schema_version(*connection));
  MUSTER_CHECK(migrate(copy, kSqliteMigrations.first(static_cast<size_t>(version))));
  MUSTER_CHECK(copy_to_sqlite(*connection, copy));
  return migrate(copy);
}

/// kConflict: it is not empty, or a server leads on it. `backup_folder` as for migrate().
Result<void> copy_into_postgres(SqliteDatabase& backup, const std::string& url,
                                const std::filesystem::path& backup_folder) {
  MUSTER_TRY(const Connection connection, connect(url));
  MUSTER_CHECK(migrate(*connection, kPostgresMigrations, backup_folder));
  MUSTER_CHECK(refuse_if_a_server_leads(*connection));
  // Closing the connection rolls back.
  MUSTER_CHECK(connection->execute("BEGIN; SET LOCAL statement_timeout = 0"));
  MUSTER_CHECK(refuse_what_is_not_empty(*connection));
  MUSTER_CHECK(copy_to_postgres(backup, *connection));
  return connection->execute("COMMIT");
}

Result<void> set_aside_in_postgres(const std::string& url, const std::string& name,
                                   base::Time now) {
  MUSTER_TRY(const Connection connection, connect(url));
  MUSTER_TRY(const int version, schema_version(*connection));
  if (version != kSchemaVersion) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "the database " + connection->url().shown + " has version " +
                         std::to_string(version) + ", but this release writes version " +
                         std::to_string(kSchemaVersion),
                 .advice = "a server of this release migrates it when it starts"};
  }
  MUSTER_CHECK(refuse_if_a_server_leads(*connection));
  // Closing the connection rolls back.
  MUSTER_CHECK(connection->execute("BEGIN; SET LOCAL statement_timeout = 0"));
  UnreadableRecords records;
  for (const RecordKind& kind : kRecordKinds) {
    MUSTER_CHECK(each_postgres_record(*connection, kind,
                                      [&](const RecordRow& row) { records.look_at(kind, row); }));
  }
  MUSTER_TRY(const UnreadableRecords::Found found, records.choose(name));
  MUSTER_CHECK(move_in_postgres(*connection, found, now));
  return connection->execute("COMMIT");
}

Result<StoreCheck> check_postgres(const std::string& url) {
  MUSTER_TRY(const Connection connection, connect_to_read(url));
  StoreCheck check;
  MUSTER_TRY(check.summary, postgres_summary_of(*connection));
  Faults faults;
  if (const auto done = check_postgres_records(*connection, faults); !done) {
    if (connection->is_broken()) return done.error();
    faults.add(done.error().what);
  }
  check.faults = faults.take();
  MUSTER_CHECK(list_set_aside_in_postgres(*connection, check.set_aside));
  return check;
}

// --- either store

/// Fills `copy` with all of `store`, in the present schema.
Result<void> fill(SqliteDatabase& copy, const std::string& store) {
  if (is_postgres_url(store)) return copy_out_of_postgres(store, copy);
  return copy_out_of_sqlite(store, copy);
}

Result<StoreSummary> write_backup(const std::string& store, const std::filesystem::path& file) {
  MUSTER_TRY(SqliteDatabase copy, SqliteDatabase::open(file, SqliteDatabase::Mode::kMake));
  MUSTER_CHECK(fill(copy, store));
  MUSTER_CHECK(copy.execute("PRAGMA journal_mode = DELETE"));  // one file, without -wal
  return summary_of(copy);
}

Error backup_exists(const std::filesystem::path& file) {
  return {.code = ErrorCode::kConflict,
          .what = "'" + file.string() + "' already exists",
          .advice = "choose another file"};
}

/// Makes the names in the folder of `file` durable, where the file system can. A folder that may be
/// written to, but not read, cannot be opened.
Result<void> sync_folder_of(const std::filesystem::path& file, const NamingCalls& calls) {
  const std::filesystem::path parent = file.parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const int error = calls.sync_folder(folder);
  if (error == 0 || error == EACCES || error == EINVAL || error == EOPNOTSUPP) return {};
  return base::system_error("cannot write folder '" + folder + "'", error);
}

bool lacks_hard_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
}

}  // namespace

NamingCalls NamingCalls::of_system() {
  using std::filesystem::path;
  return {.link = [](const path& from,
                     const path& to) { return ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno; },
          .rename_if_free =
              [](const path& from, const path& to) {
                const int done =
                    ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
                return done == 0 ? 0 : errno;
              }};
}

int NamingCalls::sync_folder_of_system(const std::filesystem::path& folder) {
  const base::UniqueFd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened && ::fsync(opened.get()) == 0 ? 0 : errno;
}

Result<void> name_backup(const std::filesystem::path& partial, const std::filesystem::path& file,
                         const NamingCalls& calls) {
  // Unlike a rename, a link does not replace a file that was created meanwhile.
  int error = calls.link(partial, file);
  if (lacks_hard_links(error)) {
    error = calls.rename_if_free(partial, file);
    if (error == EINVAL || error == ENOSYS) {
      // The file system has neither. A file that is created just now is replaced.
      std::error_code failed;
      if (std::filesystem::exists(file, failed)) return backup_exists(file);
      std::filesystem::rename(partial, file, failed);
      error = failed.value();
    }
  }
  if (error == EEXIST) return backup_exists(file);
  if (error != 0) return base::system_error("cannot create '" + file.string() + "'", error);
  Result<void> synced = sync_folder_of(file, calls);
  // After an error, no file has the name of a complete backup.
  if (!synced) ::unlink(file.c_str());
  return synced;
}

Result<StoreSummary> backup_store(const std::string& store, const std::filesystem::path& file) {
  // Written under another name: a file with the requested name is complete.
  const std::filesystem::path partial = file.string() + ".partial";
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) return backup_exists(file);
  std::filesystem::remove(partial, failed);
  Result<StoreSummary> written = write_backup(store, partial);
  if (written) {
    if (const auto named = name_backup(partial, file); !named) written = named.error();
  }
  std::filesystem::remove(partial, failed);
  return written;
}

Result<StoreSummary> restore_store(const std::filesystem::path& file, const std::string& store) {
  MUSTER_TRY(SqliteDatabase backup, open_backup(file));
  if (is_postgres_url(store)) {
    MUSTER_CHECK(copy_into_postgres(backup, store, file.parent_path()));
  } else {
    MUSTER_CHECK(copy_into_sqlite(backup, store));
  }
  return summary_of(backup);
}

Result<StoreCheck> check_store(const std::string& store) {
  return is_postgres_url(store) ? check_postgres(store) : check_sqlite(store);
}

Result<StoreCheck> set_aside_record(const std::string& store, const std::string& name,
                                    base::Time now) {
  if (is_postgres_url(store)) {
    MUSTER_CHECK(set_aside_in_postgres(store, name, now));
  } else {
    MUSTER_CHECK(set_aside_in_sqlite(store, name, now));
  }
  return check_store(store);
}

}  // namespace muster::store
