#include "store/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/unique_fd.h"
#include "store/job_document.h"
#include "store/project_document.h"
#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;
using job::Job;

namespace {

// The bytes must live until the statement was run: nothing is copied.
void bind_text(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

void bind_blob(sqlite3_stmt* statement, int index, const std::string& bytes) {
  sqlite3_bind_blob(statement, index, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
}

std::string_view column_bytes(sqlite3_stmt* statement, int index) {
  return {static_cast<const char*>(sqlite3_column_blob(statement, index)),
          static_cast<size_t>(sqlite3_column_bytes(statement, index))};
}

}  // namespace

/// Parsed once: parsing costs more than running.
struct SqliteStore::Statements {
  Statement insert_job, update_job, remove_job, find_job;
  Statement put_project, remove_project;
  Statement cordon, uncordon;
  Statement begin, commit, rollback;
};

void SqliteStore::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}
void SqliteStore::Close::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteStore::SqliteStore(Database database) : database_(std::move(database)) {}
SqliteStore::~SqliteStore() = default;

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
  // A checkpoint syncs twice more and writes each changed page anew: the rarer, the cheaper.
  MUSTER_CHECK(store->execute("PRAGMA wal_autocheckpoint = 8000"));
  MUSTER_CHECK(store->execute("PRAGMA cache_size = -65536"));  // KiB
  MUSTER_CHECK(store->bring_schema_up_to_date());
  MUSTER_CHECK(store->prepare_statements());
  return store;
}

Result<void> SqliteStore::bring_schema_up_to_date() {
  int found = 0;
  {
    MUSTER_TRY(const Statement version, prepare("PRAGMA user_version"));
    MUSTER_CHECK(step(version));
    found = sqlite3_column_int(version.get(), 0);
  }
  if (found == kSchemaVersion) return {};
  if (found > kSchemaVersion || found < 0) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "the database is of version " + std::to_string(found) +
                         ", and this Muster reads version " + std::to_string(kSchemaVersion),
                 .advice = "use the newer Muster that wrote it, or another MUSTER_STATE_DIR"};
  }
  MUSTER_CHECK(execute("BEGIN IMMEDIATE"));
  for (int version = found; version < kSchemaVersion; ++version) {
    MUSTER_CHECK(execute(kMigrations[static_cast<size_t>(version)]));  // closing it rolls back
  }
  return execute("COMMIT");
}

Result<void> SqliteStore::prepare_statements() {
  auto all = std::make_unique<Statements>();
  MUSTER_TRY(all->insert_job, prepare("INSERT INTO job (id, name, idempotency_key, document) "
                                      "VALUES (?1, ?2, nullif(?3, ''), ?4)"));
  MUSTER_TRY(all->update_job, prepare("UPDATE job SET document = ?2 WHERE id = ?1"));
  MUSTER_TRY(all->remove_job, prepare("DELETE FROM job WHERE id = ?1"));
  MUSTER_TRY(all->find_job, prepare("SELECT id FROM job WHERE idempotency_key = ?1"));
  MUSTER_TRY(all->put_project, prepare("INSERT OR REPLACE INTO project (name, sequence, document) "
                                       "VALUES (?1, ?2, ?3)"));
  MUSTER_TRY(all->remove_project, prepare("DELETE FROM project WHERE name = ?1"));
  MUSTER_TRY(all->cordon,
             prepare("INSERT OR REPLACE INTO node_setting (name, cordoned) VALUES (?1, 1)"));
  MUSTER_TRY(all->uncordon, prepare("DELETE FROM node_setting WHERE name = ?1"));
  MUSTER_TRY(all->begin, prepare("BEGIN IMMEDIATE"));
  MUSTER_TRY(all->commit, prepare("COMMIT"));
  MUSTER_TRY(all->rollback, prepare("ROLLBACK"));
  statements_ = std::move(all);
  return {};
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

Result<void> SqliteStore::run(const Statement& statement) {
  Result<bool> done = step(statement);
  sqlite3_reset(statement.get());
  if (!done) return std::move(done).error();
  return {};
}

Result<void> SqliteStore::each_row(const char* sql, const Take& take) {
  MUSTER_TRY(const Statement select, prepare(sql));
  while (true) {
    MUSTER_TRY(const bool there, step(select));
    if (!there) return {};
    MUSTER_CHECK(take(column_bytes(select.get(), 0)));
  }
}

Result<Contents> SqliteStore::load() {
  Contents contents;
  MUSTER_CHECK(each_row("SELECT document FROM job ORDER BY sequence",
                        [&](std::string_view document) -> Result<void> {
                          MUSTER_TRY(Job job, from_document(document));
                          contents.jobs.push_back(std::move(job));
                          return {};
                        }));
  MUSTER_CHECK(each_row("SELECT document FROM project ORDER BY sequence, name",
                        [&](std::string_view document) -> Result<void> {
                          MUSTER_TRY(job::Project project, from_project_document(document));
                          contents.projects.push_back(std::move(project));
                          return {};
                        }));
  MUSTER_CHECK(each_row("SELECT name FROM node_setting WHERE cordoned ORDER BY name",
                        [&](std::string_view name) -> Result<void> {
                          contents.cordoned_nodes.emplace_back(name);
                          return {};
                        }));
  return contents;
}

Result<void> SqliteStore::commit(const Batch& batch) {
  if (batch.empty()) return {};
  MUSTER_CHECK(run(statements_->begin));
  Result<void> done = write(batch);
  if (done) done = run(statements_->commit);
  if (done) return {};
  // SQLite has rolled back itself where the disk is full or failing; then this fails, and may.
  (void)run(statements_->rollback);
  return done;
}

Result<void> SqliteStore::write(const Batch& batch) {
  // What goes makes room first: a name may be given anew.
  for (const std::string& id : batch.removed_jobs) {
    MUSTER_CHECK(run_by_name(statements_->remove_job, id));
  }
  for (const NewJob& job : batch.new_jobs) MUSTER_CHECK(insert(job));
  for (const Job* job : batch.changed_jobs) MUSTER_CHECK(update(*job));
  for (const std::string& name : batch.removed_projects) {
    MUSTER_CHECK(run_by_name(statements_->remove_project, name));
  }
  for (const job::Project& project : batch.projects) MUSTER_CHECK(put(project));
  for (const std::string& name : batch.uncordoned_nodes) {
    MUSTER_CHECK(run_by_name(statements_->uncordon, name));
  }
  for (const std::string& name : batch.cordoned_nodes) {
    MUSTER_CHECK(run_by_name(statements_->cordon, name));
  }
  return {};
}

Result<void> SqliteStore::insert(const NewJob& job) {
  const Statement& insert = statements_->insert_job;
  const std::string document = to_document(*job.job);
  bind_text(insert.get(), 1, job.job->id);
  bind_text(insert.get(), 2, job.job->spec.name);
  bind_text(insert.get(), 3, job.idempotency_key);
  bind_blob(insert.get(), 4, document);
  return run(insert);
}

Result<void> SqliteStore::update(const Job& job) {
  const Statement& update = statements_->update_job;
  const std::string document = to_document(job);
  bind_text(update.get(), 1, job.id);
  bind_blob(update.get(), 2, document);
  MUSTER_CHECK(run(update));
  if (sqlite3_changes(database_.get()) == 0) {
    return Error{.code = ErrorCode::kNotFound, .what = "the database has no job " + job.id};
  }
  return {};
}

Result<void> SqliteStore::run_by_name(const Statement& statement, const std::string& name) {
  bind_text(statement.get(), 1, name);
  return run(statement);
}

Result<void> SqliteStore::put(const job::Project& project) {
  const Statement& put = statements_->put_project;
  const std::string document = to_project_document(project);
  bind_text(put.get(), 1, project.name);
  sqlite3_bind_int64(put.get(), 2, static_cast<sqlite3_int64>(project.sequence));
  bind_blob(put.get(), 3, document);
  return run(put);
}

Result<std::optional<std::string>> SqliteStore::find_by_key(const std::string& idempotency_key) {
  const Statement& find = statements_->find_job;
  bind_text(find.get(), 1, idempotency_key);
  Result<bool> row = step(find);
  std::optional<std::string> id;
  if (row && *row) id = column_bytes(find.get(), 0);
  sqlite3_reset(find.get());
  if (!row) return std::move(row).error();
  return id;
}

}  // namespace muster::store
