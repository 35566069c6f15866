// Collects changes of jobs and objects and commits them together: the disk is synced once for all changes in one turn
// of the loop.
//
// On the EventLoop's thread; loop, store and metrics must outlive it. A job that is handed in must
// live until the next flush(), or be passed to forget().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "control/metrics.h"
#include "store/store.h"

namespace muster::control {

using base::Result;

/// For the caller of a change that takes effect although the store could not take it: the change was
/// not refused, and the journal stores it later. `effect`: "job 'train' is being stopped". `why`: the
/// error of Journal::flush(); the result has its code.
base::Error stored_later(const std::string& effect, base::Error why);

class Journal {
 public:
  /// Called after the commit, with its result.
  using Then = std::function<void(const Result<void>&)>;

  Journal(base::EventLoop& loop, store::Store& store, Metrics& metrics)
      : loop_(loop), store_(store), metrics_(metrics) {}

  // These changes are committed by the end of this turn of the loop.
  void add(const job::Job& job, std::string idempotency_key, Then then,
           std::vector<access::AuditRecord> audit = {});
  void change(const job::Job& job);
  /// An object in its new state; of several calls for one object, the last one counts.
  void put(store::Object object);
  void drop(const store::ObjectKey& key);  ///< removes an object
  /// An array or a sweep has ended; its state, which records that, is put in the same turn.
  void put_end(job::ObjectEnd end);
  /// Records of changes that are retained if the commit fails: so are the records.
  void note(std::vector<access::AuditRecord> records);
  void then(std::function<void()> action);  ///< is called after the commit, even if it fails

  /// Calls `action` once the changes until now are on disk: if the commit fails, after the next
  /// successful commit.
  void once_committed(std::function<void()> action);

  /// Commits now, together with `more`. If the commit fails, new jobs are dropped and their callers
  /// get the error; changes of other jobs are logged and tried again in a moment, while jobs run
  /// on. If the store refuses a new job (kConflict), only its own caller gets the error: all else is
  /// committed without it.
  Result<void> flush(store::Batch more = {});

  /// Drops uncommitted changes of this job, which is about to be deleted.
  void forget(const job::Job& job);
  /// Whether a change of this job is to be committed.
  bool owes(const job::Job& job) const { return known_changed_.contains(&job); }

  /// Passed on to the store: store::Batch::ended.
  void on_ended(store::Batch::Ended action) { ended_ = std::move(action); }

  /// Calls `action` in a later turn of the loop.
  void later(std::function<void()> action);

 private:
  void flush_soon();
  Result<void> commit(const store::Batch& batch);

  struct NewOne {
    store::NewJob job;
    Then then;
    std::vector<access::AuditRecord> audit;
  };

  struct Committed {
    Result<void> of_batch;
    std::vector<Result<void>> of_new_ones;  ///< in their order
  };
  Committed commit_with(store::Batch batch, const std::vector<NewOne>& new_ones);

  base::EventLoop& loop_;
  store::Store& store_;
  Metrics& metrics_;
  std::vector<NewOne> new_ones_;
  std::vector<const job::Job*> changed_;  ///< in the order in which they changed
  std::unordered_set<const job::Job*> known_changed_;
  std::map<store::ObjectKey, std::optional<store::Object>> objects_;  ///< nothing: is removed
  std::vector<job::ObjectEnd> ends_;
  std::vector<access::AuditRecord> records_;
  store::Batch::Ended ended_;
  std::vector<std::function<void()>> then_;
  std::vector<std::function<void()>> once_committed_;
  base::EventLoop::Interest retry_;
  bool flush_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
