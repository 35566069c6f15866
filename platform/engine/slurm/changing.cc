// Files of tasks that run are changed on their nodes.
#include <memory>

#include "engine/engine_errors.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// One call of change_files(), until each task has answered.
struct Changes {
  size_t left = 1;
  Result<void> all;
  Engine::Done done;

  void answered(const std::string& task, const Result<void>& how) {
    if (!how && all) all = change_error(task, how.error());
    if (--left == 0) done(all);
  }
};

}  // namespace

void SlurmEngine::change_files(const Gang& name, std::vector<launch::FileChange> changes,
                               Done done) {
  const auto call = std::make_shared<Changes>();
  call->done = std::move(done);
  for (launch::FileChange& change : changes) {
    const auto task = impl_->find(name, change.task);
    if (task == nullptr || task->end) continue;
    ++call->left;
    const auto answered = [call, its_name = change.task](const Result<void>& how) {
      call->answered(its_name, how);
    };
    if (!task->up || task->start) {
      const auto gang = impl_->find(name);
      const bool is_unknown = !task->start && !gang->seat_of(*task).started;
      const Result<void> how = is_unknown ? Result<void>{} : Result<void>(not_started_yet());
      impl_->soon([answered, how] { answered(how); });
      continue;
    }
    const uint64_t number = ++impl_->last_number;
    task->changes[number] = answered;
    impl_->order(task, slurm::ChangeOrder{.number = number, .change = std::move(change)});
  }
  impl_->soon([call] { call->answered("", {}); });
}

/// Its end is no error; a node that is gone is one.
void SlurmEngine::Impl::fail_changes(const TaskPointer& task) {
  for (auto& [number, answered] : std::exchange(task->changes, {})) {
    const Result<void> how = task->end
                                 ? Result<void>{}
                                 : Result<void>(Error{.code = ErrorCode::kUnavailable,
                                                      .what = "the connection to its node broke"});
    soon([answered = std::move(answered), how] { answered(how); });
  }
}

}  // namespace muster::engine
