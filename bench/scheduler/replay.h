// What durability alone costs: RecordingStore keeps the rows of jobs that a run commits, and replay()
// writes the same bytes again, in the same transactions, to another database. Without a scheduler,
// without a controller, and with the documents ready.
//
// On one thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/store.h"

namespace bench {

using namespace muster;

/// A row of the table of jobs.
struct Row {
  std::string id;
  std::string project;  ///< of a new job only, as the name
  std::string name;
  std::string document;
  int64_t checksum = 0;
  std::string facts;
};

struct Transaction {
  std::vector<Row> inserts;
  std::vector<Row> updates;
};

/// Commits to another store, and keeps what it committed.
class RecordingStore : public store::Store {
 public:
  explicit RecordingStore(store::Store& store) : store_(store) {}

  base::Result<store::Contents> load() override { return store_.load(); }
  base::Result<void> commit(const store::Batch& batch) override;
  base::Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  base::Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override {
    return store_.audit(query);
  }
  base::Result<void> ping() override { return store_.ping(); }

  const std::vector<Transaction>& transactions() const { return transactions_; }

 private:
  store::Store& store_;
  std::vector<Transaction> transactions_;
};

/// Commits the transactions to a new database at `file`, and prints what that took as one line of
/// JSON.
base::Result<void> replay(const std::vector<Transaction>& transactions,
                          const std::filesystem::path& file);

}  // namespace bench
