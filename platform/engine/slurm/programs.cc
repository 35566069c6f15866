// Programs in tasks: those beside a task's own, and the task's own, for whoever sits before it. Its
// muster-node makes a connection of its own for each.
#include <signal.h>

#include <utility>

#include "engine/folder/run_conversation.h"
#include "engine/node/program_streams.h"
#include "engine/slurm/slurm_engine_impl.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

Error task_not_running(const std::string& task) {
  return {.code = ErrorCode::kConflict,
          .what = "task " + task + " does not run",
          .advice = "programs can be run in tasks that run"};
}

}  // namespace

/// The stream by which a task's muster-node is to come for this conversation.
uint64_t SlurmEngine::Impl::stream_for(const TaskPointer& task,
                                       const std::shared_ptr<RunConversation>& conversation) {
  const uint64_t stream = ++last_number;
  task->streams.insert(stream);
  streams[stream] = [conversation, stream, weak = std::weak_ptr(task)](
                        Result<std::shared_ptr<node::NodeConnection>> line) {
    if (const auto still = weak.lock()) still->streams.erase(stream);
    if (!line) return conversation->refused(line.error());
    conversation->connected(node::link_program(*std::move(line), conversation));
  };
  return stream;
}

/// Those that were asked for and never came.
void SlurmEngine::Impl::fail_streams(const TaskPointer& task) {
  for (const uint64_t stream : std::exchange(task->streams, {})) {
    const auto waiting = streams.extract(stream);
    if (waiting.empty()) continue;
    const Error error =
        task->end ? task_not_running(task->name)
                  : Error{.code = ErrorCode::kUnavailable,
                          .what = "the connection to the node of task " + task->name + " broke"};
    soon([arrived = waiting.mapped(), error] { arrived(error); });
  }
}

Result<std::unique_ptr<Exec>> SlurmEngine::exec(const Gang& gang, const std::string& name,
                                                const ExecPlan& plan, ExecHandlers handlers) {
  const auto task = impl_->find(gang, name);
  if (task == nullptr || !task->runs() || task->start) return task_not_running(name);
  // Without a word: its task has ended and took it along.
  const auto conversation = std::make_shared<RunConversation>(
      impl_->loop, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  impl_->order(task,
               node::ExecOrder{.stream = impl_->stream_for(task, conversation), .plan = plan});
  return near_end_of(conversation);
}

Result<std::unique_ptr<Exec>> SlurmEngine::attach(const Gang& gang, const std::string& name,
                                                  ExecHandlers handlers) {
  const auto task = impl_->find(gang, name);
  if (task == nullptr || !task->runs() || task->start) return task_not_running(name);
  const auto conversation = std::make_shared<RunConversation>(
      impl_->loop, job::ExitStatus{.lost = true, .error = "the task's terminal is gone"},
      std::move(handlers));
  conversation->hear_end_of(
      {.status = [weak = std::weak_ptr(task)]() -> std::optional<job::ExitStatus> {
         const auto still = weak.lock();
         if (!still || !still->end) return std::nullopt;
         return still->end->status;
       },
       .wait =
           [impl = impl_.get(), weak = std::weak_ptr(task)](std::function<void()> over) {
             const auto still = weak.lock();
             if (!still || still->end) return impl->soon(std::move(over));
             still->when_over.push_back(std::move(over));
           }});
  impl_->order(task, node::AttachOrder{.stream = impl_->stream_for(task, conversation)});
  return near_end_of(conversation);
}

}  // namespace muster::engine
