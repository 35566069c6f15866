#include "store/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/unique_fd.h"
#include "store/job_document.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;
using job::Job;

namespace {

constexpr int kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
BEGIN;
CREATE TABLE job (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  document BLOB NOT NULL,
  UNIQUE (project, name)
) STRICT;
PRAGMA user_version = 1;
COMMIT;
)sql";

void bind_text(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void bind_blob(sqlite3_stmt* statement, int index, const std::string& bytes) {
  sqlite3_bind_blob(statement, index, bytes.data(), static_cast<int>(bytes.size()),
                    SQLITE_TRANSIENT);
}

std::string_view column_bytes(sqlite3_stmt* statement, int index) {
  return {static_cast<const char*>(sqlite3_column_blob(statement, index)),
          static_cast<size_t>(sqlite3_column_bytes(statement, index))};
}

}  // namespace

void SqliteStore::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}
void SqliteStore::Close::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Error SqliteStore::error(const char* what) const {
  const int number = sqlite3_errcode(database_.get());
  const ErrorCode code = number == SQLITE_FULL         ? ErrorCode::kExhausted
                         : number == SQLITE_CONSTRAINT ? ErrorCode::kConflict
                         : number == SQLITE_READONLY   ? ErrorCode::kRefused
                                                       : ErrorCode::kInternal;
  return {.code = code,
          .what = std::string("database: ") + what + ": " + sqlite3_errmsg(database_.get())};
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::filesystem::path& file) {
  // SQLite would make the file with the umask's mode; its -wal and -shm take the mode of the file.
  const base::UniqueFd made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made) return base::system_error("cannot open '" + file.string() + "'", errno);
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<SqliteStore> store(new SqliteStore(Database(raw)));
  if (opened != SQLITE_OK) return store->error("cannot be opened");
  MUSTER_CHECK(store->execute("PRAGMA journal_mode = WAL"));
  MUSTER_CHECK(store->execute("PRAGMA synchronous = FULL"));
  MUSTER_CHECK(store->prepare_schema());
  return store;
}

Result<void> SqliteStore::prepare_schema() {
  MUSTER_TRY(const Statement version, prepare("PRAGMA user_version"));
  MUSTER_CHECK(step(version));
  const int found = sqlite3_column_int(version.get(), 0);
  if (found == 0) return execute(kSchema);
  if (found == kSchemaVersion) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "the database is of version " + std::to_string(found) +
                       ", and this Muster reads version " + std::to_string(kSchemaVersion),
               .advice = "use the newer Muster that wrote it, or another MUSTER_STATE_DIR"};
}

Result<void> SqliteStore::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error(sql);
  return {};
}

Result<SqliteStore::Statement> SqliteStore::prepare(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) return error(sql);
  return Statement(raw);
}

Result<bool> SqliteStore::step(const Statement& statement) {
  const int result = sqlite3_step(statement.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return error(sqlite3_sql(statement.get()));
}

Result<std::vector<Job>> SqliteStore::load() {
  MUSTER_TRY(const Statement select, prepare("SELECT document FROM job ORDER BY sequence"));
  std::vector<Job> jobs;
  while (true) {
    MUSTER_TRY(const bool row, step(select));
    if (!row) return jobs;
    MUSTER_TRY(Job job, from_document(column_bytes(select.get(), 0)));
    jobs.push_back(std::move(job));
  }
}

Result<void> SqliteStore::insert(const Job& job, const std::string& idempotency_key) {
  MUSTER_TRY(const Statement insert,
             prepare("INSERT INTO job (id, project, name, idempotency_key, document) "
                     "VALUES (?1, ?2, ?3, nullif(?4, ''), ?5)"));
  bind_text(insert.get(), 1, job.id);
  bind_text(insert.get(), 2, job.spec.project);
  bind_text(insert.get(), 3, job.spec.name);
  bind_text(insert.get(), 4, idempotency_key);
  bind_blob(insert.get(), 5, to_document(job));
  MUSTER_CHECK(step(insert));
  return {};
}

Result<std::optional<std::string>> SqliteStore::find_by_key(const std::string& idempotency_key) {
  MUSTER_TRY(const Statement select, prepare("SELECT id FROM job WHERE idempotency_key = ?1"));
  bind_text(select.get(), 1, idempotency_key);
  MUSTER_TRY(const bool row, step(select));
  if (!row) return std::optional<std::string>();
  return std::optional<std::string>(column_bytes(select.get(), 0));
}

Result<void> SqliteStore::update(const Job& job) {
  MUSTER_TRY(const Statement update, prepare("UPDATE job SET document = ?2 WHERE id = ?1"));
  bind_text(update.get(), 1, job.id);
  bind_blob(update.get(), 2, to_document(job));
  MUSTER_CHECK(step(update));
  if (sqlite3_changes(database_.get()) == 0) {
    return Error{.code = ErrorCode::kNotFound, .what = "the database has no job " + job.id};
  }
  return {};
}

Result<void> SqliteStore::remove(const std::string& id) {
  MUSTER_TRY(const Statement remove, prepare("DELETE FROM job WHERE id = ?1"));
  bind_text(remove.get(), 1, id);
  MUSTER_CHECK(step(remove));
  return {};
}

}  // namespace muster::store
