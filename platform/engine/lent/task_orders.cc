#include "engine/lent/task_orders.h"

#include <signal.h>

#include <utility>

#include "engine/engine_errors.h"
#include "engine/node/program_streams.h"

namespace muster::engine::lent {

using base::Error;
using base::ErrorCode;
using node::NodeConnection;

namespace {

Error task_not_running(const std::string& task) {
  return {.code = ErrorCode::kConflict,
          .what = "task " + task + " does not run",
          .advice = "programs can only be run in running tasks"};
}

/// The streams that a muster-node opens on this order.
std::vector<uint64_t> streams_of(const node::NodeOrder& order) {
  if (const auto* const exec = std::get_if<node::ExecOrder>(&order)) return {exec->stream};
  if (const auto* const attach = std::get_if<node::AttachOrder>(&order)) return {attach->stream};
  if (const auto* const artifacts = std::get_if<node::ArtifactsOrder>(&order)) {
    return {artifacts->stream};
  }
  std::vector<uint64_t> streams;
  if (const auto* const start = std::get_if<node::StartOrder>(&order)) {
    streams = start->trees;
    std::erase(streams, 0);
  }
  return streams;
}

/// One call of change_files(), until every task has answered.
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

void TaskOrders::send(const GangPointer& gang, const TaskPointer& task, node::NodeOrder order) {
  if (task->line != nullptr) return send_now(gang, task, order);
  task->orders.push_back(std::move(order));
}

void TaskOrders::send_now(const GangPointer& gang, const TaskPointer& task,
                          const node::NodeOrder& order) {
  task->line->send(order);
  if (!lender_.connect_stream) return;
  for (const uint64_t stream : streams_of(order)) lender_.connect_stream(gang, task, stream);
}

void TaskOrders::send_waiting(const GangPointer& gang, const TaskPointer& task) {
  for (const node::NodeOrder& order : std::exchange(task->orders, {})) send_now(gang, task, order);
}

// --- changes

void TaskOrders::change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                              Engine::Done done) {
  const auto call = std::make_shared<Changes>();
  call->done = std::move(done);
  for (launch::FileChange& change : changes) {
    const auto held = gangs_.find(gang);
    const auto task = gangs_.find(gang, change.task);
    if (task == nullptr || task->end) continue;
    ++call->left;
    const auto answered = [call, its_name = change.task](const Result<void>& how) {
      call->answered(its_name, how);
    };
    if (!task->up || task->start) {
      const bool is_unknown = !task->start && !held->seat_of(*task).started;
      const Result<void> how = is_unknown ? Result<void>{} : Result<void>(not_started_yet());
      reports_.post([answered, how] { answered(how); });
      continue;
    }
    const uint64_t number = ++last_number_;
    task->changes[number] = answered;
    send(held, task, node::ChangeOrder{.number = number, .change = std::move(change)});
  }
  reports_.post([call] { call->answered("", {}); });
}

void TaskOrders::change_answered(const TaskPointer& task, uint64_t number,
                                 std::optional<Error> error) {
  const auto asked = task->changes.extract(number);
  if (asked.empty()) return;
  reports_.post([done = asked.mapped(), error = std::move(error)] {
    done(error ? Result<void>(*error) : Result<void>{});
  });
}

// --- streams

uint64_t TaskOrders::expect(const std::string& job_id, Arrived arrived) {
  expected_[++last_number_] = {.job_id = job_id, .arrived = std::move(arrived)};
  return last_number_;
}

uint64_t TaskOrders::expect_sending(const std::string& job_id,
                                    const std::filesystem::path& folder) {
  return expect(job_id, [this, folder](Line line) {
    if (line) sender_.send(*std::move(line), folder);
  });
}

void TaskOrders::receive(std::shared_ptr<NodeConnection> line, const std::filesystem::path& folder,
                         int64_t most, node::FolderReceiver::Done done,
                         node::FolderReceiver::Progress progress) {
  receiver_.receive(std::move(line), folder, most, std::move(done), std::move(progress));
}

void TaskOrders::arrived(const std::string& job_id, uint64_t stream, Line line) {
  const auto found = expected_.find(stream);
  if (found == expected_.end() || found->second.job_id != job_id) return;
  const auto expected = expected_.extract(found);
  expected.mapped().arrived(std::move(line));
}

uint64_t TaskOrders::expect_program(const GangId& gang, const TaskPointer& task,
                                    const std::shared_ptr<RunConversation>& conversation) {
  const uint64_t stream = last_number_ + 1;
  expect(gang.job_id, [conversation, stream, weak = std::weak_ptr(task)](Line line) {
    if (const auto still = weak.lock()) still->streams.erase(stream);
    if (!line) return conversation->refused(line.error());
    conversation->connected(node::link_program(*std::move(line), conversation));
  });
  task->streams.insert(stream);
  return stream;
}

/// The end of a task is not an error for its changes; a lost node is one.
void TaskOrders::fail_changes(const TaskPointer& task) {
  for (auto& [number, answered] : std::exchange(task->changes, {})) {
    const Result<void> how =
        task->end ? Result<void>{}
                  : Result<void>(Error{.code = ErrorCode::kUnavailable,
                                       .what = "the connection to its node was lost"});
    reports_.post([answered = std::move(answered), how] { answered(how); });
  }
}

void TaskOrders::fail_streams(const TaskPointer& task) {
  for (const uint64_t stream : std::exchange(task->streams, {})) {
    const auto expected = expected_.extract(stream);
    if (expected.empty()) continue;
    const Error error =
        task->end ? task_not_running(task->name)
                  : Error{.code = ErrorCode::kUnavailable,
                          .what = "the connection to the node of task " + task->name + " was lost"};
    reports_.post([arrived = expected.mapped().arrived, error] { arrived(error); });
  }
}

// --- programs

Result<std::unique_ptr<Exec>> TaskOrders::exec(const GangId& gang, const std::string& name,
                                               const ExecPlan& plan, ExecHandlers handlers) {
  const auto task = gangs_.find(gang, name);
  if (task == nullptr || !task->runs() || task->start) return task_not_running(name);
  // A conversation that ends without a message: the task has ended and killed the program.
  const auto conversation = std::make_shared<RunConversation>(
      loop_, job::ExitStatus{.signal = SIGKILL, .error = ""}, std::move(handlers));
  send(gangs_.find(gang), task,
       node::ExecOrder{.stream = expect_program(gang, task, conversation), .plan = plan});
  return near_end_of(conversation);
}

Result<std::unique_ptr<Exec>> TaskOrders::attach(const GangId& gang, const std::string& name,
                                                 ExecHandlers handlers) {
  const auto task = gangs_.find(gang, name);
  if (task == nullptr || !task->runs() || task->start) return task_not_running(name);
  const auto conversation = std::make_shared<RunConversation>(
      loop_, job::ExitStatus{.lost = true, .error = "the connection to the task's program is lost"},
      std::move(handlers));
  conversation->await_end_of(
      {.status = [weak = std::weak_ptr(task)]() -> std::optional<job::ExitStatus> {
         const auto still = weak.lock();
         if (!still || !still->end) return std::nullopt;
         return still->end->status;
       },
       .wait =
           [&reports = reports_, weak = std::weak_ptr(task)](std::function<void()> over) {
             const auto still = weak.lock();
             if (!still || still->end) return reports.post(std::move(over));
             still->when_over.push_back(std::move(over));
           }});
  send(gangs_.find(gang), task,
       node::AttachOrder{.stream = expect_program(gang, task, conversation)});
  return near_end_of(conversation);
}

}  // namespace muster::engine::lent
