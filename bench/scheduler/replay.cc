#include "replay.h"

#include <time.h>

#include <chrono>
#include <cstdio>

#include "store/packed_job.h"
#include "store/records.h"
#include "store/sqlite_database.h"
#include "store/sqlite_store.h"

namespace bench {

namespace {

Row row_of(const job::Job& job, bool is_new) {
  Row row{.id = job.id, .document = store::to_document(job)};
  row.checksum = store::checksum_of(job, row.document);
  row.facts = store::stored_facts(job, row.checksum);
  if (is_new) {
    row.project = job.spec.project;
    row.name = job.spec.name;
  }
  return row;
}

double cpu_seconds_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

base::Result<void> write(const Transaction& transaction, store::SqliteStatement& insert,
                         store::SqliteStatement& update) {
  for (const Row& row : transaction.inserts) {
    MUSTER_CHECK(insert.text(1, row.id)
                     .text(2, row.project)
                     .text(3, row.name)
                     .text(4, "")
                     .blob(5, row.document)
                     .number(6, row.checksum)
                     .blob(7, row.facts)
                     .run());
  }
  for (const Row& row : transaction.updates) {
    MUSTER_CHECK(update.text(1, row.id)
                     .blob(2, row.document)
                     .number(3, row.checksum)
                     .blob(4, row.facts)
                     .run());
  }
  return {};
}

}  // namespace

base::Result<void> RecordingStore::commit(const store::Batch& batch) {
  Transaction& kept = transactions_.emplace_back();
  for (const store::NewJob& job : batch.new_jobs) kept.inserts.push_back(row_of(*job.job, true));
  for (const job::Job* const job : batch.changed_jobs) kept.updates.push_back(row_of(*job, false));
  return store_.commit(batch);
}

// The settings and the statements are those of SqliteStore.
base::Result<void> replay(const std::vector<Transaction>& transactions,
                          const std::filesystem::path& file) {
  MUSTER_TRY(auto made, store::SqliteStore::open(file));
  made.reset();
  MUSTER_TRY(store::SqliteDatabase database,
             store::SqliteDatabase::open(file, store::SqliteDatabase::Mode::kWrite));
  for (const char* const setting : {"PRAGMA synchronous = FULL", "PRAGMA wal_autocheckpoint = 8000",
                                    "PRAGMA cache_size = -65536", "PRAGMA cell_size_check = ON"}) {
    MUSTER_CHECK(database.execute(setting));
  }
  MUSTER_TRY(store::SqliteStatement insert,
             database.prepare(
                 "INSERT INTO job (id, project, name, idempotency_key, document, checksum, facts) "
                 "VALUES (?1, ?2, ?3, nullif(?4, ''), ?5, ?6, nullif(?7, x''))"));
  MUSTER_TRY(store::SqliteStatement update,
             database.prepare("UPDATE job SET document = ?2, checksum = ?3, facts = nullif(?4, x'')"
                              " WHERE id = ?1"));
  size_t inserts = 0;
  size_t updates = 0;
  size_t bytes = 0;
  const auto began = std::chrono::steady_clock::now();
  const double cpu_began = cpu_seconds_of_thread();
  for (const Transaction& transaction : transactions) {
    MUSTER_CHECK(database.execute("BEGIN IMMEDIATE"));
    MUSTER_CHECK(write(transaction, insert, update));
    MUSTER_CHECK(database.execute("COMMIT"));
  }
  const double cpu_s = cpu_seconds_of_thread() - cpu_began;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  for (const Transaction& transaction : transactions) {
    inserts += transaction.inserts.size();
    updates += transaction.updates.size();
    for (const auto* const rows : {&transaction.inserts, &transaction.updates}) {
      for (const Row& row : *rows) bytes += row.document.size() + row.facts.size();
    }
  }
  std::printf("{\"transactions\": %zu, \"inserts\": %zu, \"updates\": %zu, \"bytes\": %zu, ",
              transactions.size(), inserts, updates, bytes);
  std::printf("\"replay_s\": %.3f, \"replay_cpu_s\": %.3f}\n", took.count(), cpu_s);
  return {};
}

}  // namespace bench
