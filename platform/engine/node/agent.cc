#include "engine/node/agent.h"

#include <algorithm>
#include <utility>

namespace muster::engine::node {

namespace {

/// For a task that is killed because the server no longer needs it.
constexpr std::chrono::seconds kUnwantedTaskGrace{20};
/// For the output and exit codes of programs beside the task, which has ended. Shorter than the
/// server waits for this node to leave.
constexpr std::chrono::seconds kLastPrograms{8};
constexpr std::chrono::milliseconds kAfterItsStop{200};
constexpr int kSignalBase = 128;
constexpr int kNoServer = 1;

}  // namespace

Agent::Agent(base::EventLoop& loop, ServerWay& way, AgentOptions options)
    : loop_(loop),
      options_(std::move(options)),
      way_(way),
      line_(loop, way_,
            {.hello = [this] { return hello(0); },
             .on_order =
                 [this](const NodeOrder& order) {
                   std::visit([this](const auto& each) { handle(each); }, order);
                 },
             .on_lost =
                 [this] {
                   if (task_) task_->reports().server_lost();
                 },
             .on_drain =
                 [this] {
                   if (task_) task_->reports().pause(false);
                 },
             .calls_again = [this] { return calls_again(); }}) {}

Agent::~Agent() = default;

void Agent::begin() {
  line_.call();
}

Hello Agent::hello(uint64_t stream) const {
  return {.stream = stream,
          .facts = options_.site.facts,
          .address = options_.address,
          .shares_folder = options_.shares_folder,
          .version = options_.version,
          .holds_task = task_ && !task_->failed_to_start(),
          .start = task_ ? task_->start_number() : 0,
          .image = stream == 0 ? options_.image : std::nullopt};
}

bool Agent::calls_again() {
  if (farewell_) return false;
  if (waits_for_task() || line_.silence() < options_.brief.linger) return true;
  give_up();
  return false;
}

void Agent::send(const NodeNews& news) {
  const bool is_end = std::holds_alternative<EndedNews>(news);
  if (is_end && !signal_ && options_.poll_signals) options_.poll_signals();
  if (!line_.send(news) && task_) task_->reports().pause(true);
}

// --- orders

void Agent::handle(const Welcome& welcome) {
  if (reported_signal_) send(SignalledNews{*reported_signal_});
  // A failed start has left nothing to report: the server got the answer, or orders the start
  // again. If a task that was started with it failed, the server has forgotten this one.
  const bool is_expected = task_ && (welcome.start == 0 || welcome.start == task_->start_number());
  if (is_expected && !task_->failed_to_start()) task_->reports().report_again(welcome);
}

void Agent::handle(const StartOrder& order) {
  if (task_ && !task_->has_ended()) {
    return send(StartAnswer{
        base::Error{.code = base::ErrorCode::kConflict,
                    .what = "task " + order.plan.task + " of this attempt was started before"}});
  }
  if (task_) task_->remove_files();
  task_ended_.reset();
  task_ = std::make_unique<NodeTask>(
      loop_, GangId{options_.brief.caller.gang.job_id, order.attempt}, options_.site, order,
      [this](const NodeNews& news) { send(news); },
      [this](uint64_t stream, std::function<void(Line)> then) {
        return way_.call(hello(stream), std::move(then));
      });
  task_->on_end([this] {
    task_ended_ = std::chrono::steady_clock::now();
    leave_if_done();
  });
  task_->on_programs_end([this] { leave_if_done(); });
  task_->reports().report_again(Welcome{.start = order.start});  // of a new task, all
  task_->start();
  if (!signal_) return;
  reported_signal_ = signal_;
  send(SignalledNews{*signal_});
  task_->stop(StopMode::kGraceful);
}

void Agent::handle(const StopOrder& order) {
  if (task_) task_->stop(order.mode);
}

void Agent::handle(const ChangeOrder& order) {
  if (task_) return task_->change(order);
  send(ChangeAnswer{order.number, std::nullopt});
}

void Agent::handle(const ExecOrder& order) {
  if (task_) return task_->exec(order);
  send(StreamRefused{order.stream,
                     {.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
}

void Agent::handle(const AttachOrder& order) {
  if (task_) return task_->attach(order);
  send(StreamRefused{order.stream,
                     {.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
}

void Agent::handle(const ArtifactsOrder& order) {
  if (task_) return task_->send_artifacts(order);
  send(StreamRefused{order.stream,
                     {.code = base::ErrorCode::kNotFound, .what = "the task was never started"}});
}

void Agent::handle(const Farewell& farewell) {
  farewell_ = farewell;
  leave_if_done();
  if (!waits_for_task()) return;
  task_->stop(StopMode::kNow);
  ending_ = loop_.after(kUnwantedTaskGrace, [this] { leave(farewell_->code); });
}

// --- the end

void Agent::handle_signal(int signal) {
  signal_ = signal;
  if (may_have_ended_task()) {
    reported_signal_ = signal;
    send(SignalledNews{signal});
  }
  if (task_) {
    before_the_kill_ = loop_.after(options_.kill_after, [this] { remove_everything(); });
    return task_->stop(StopMode::kGraceful);
  }
  // Later: the news must arrive first.
  loop_.post([this] { leave(kSignalBase + *signal_); });
}

/// A task that ended before the signal came has ended by itself, and only its artifacts are still being
/// fetched.
bool Agent::may_have_ended_task() const {
  if (!task_ || !task_->end()) return true;
  const auto ended_for =
      task_ended_ ? std::chrono::steady_clock::now() - *task_ended_ : std::chrono::nanoseconds(0);
  return ended_for < options_.signal_lag;
}

/// The cluster kills the job before the absent server can come back, and the files in a folder of
/// the node's own, keys among them, would stay behind.
void Agent::remove_everything() {
  if (line_.is_accepted() || !task_ || task_->is_shared()) return;
  if (!task_->has_ended()) {
    task_->stop(StopMode::kNow);
    before_the_kill_ = loop_.after(kAfterItsStop, [this] { remove_everything(); });
    return;
  }
  options_.complain(
      options_.cluster +
      " ends the job, and Muster's server does not answer; what the server has not received is "
      "lost: " +
      line_.last_failure());
  task_->remove_files();
  leave(kSignalBase + *signal_);
}

void Agent::leave_if_done() {
  if (!farewell_ || waits_for_task()) return;
  if (task_ && task_->has_programs()) return wait_for_programs();
  // Later: a handler of the task may be running.
  loop_.post([this] { leave(farewell_->code); });
}

/// A program that has let the task end has an exit code, too: it may be on its way to the server, or
/// wait for the connection that the server opens for it.
void Agent::wait_for_programs() {
  if (for_programs_) return;
  for_programs_ = loop_.after(kLastPrograms, [this] { leave(farewell_->code); });
}

void Agent::give_up() {
  if (!line_.was_ever_accepted()) {
    options_.complain("cannot reach Muster's server from node " + options_.site.facts.node + ": " +
                      line_.last_failure());
    return leave(kNoServer);
  }
  if (!task_ || !task_->end()) {
    options_.complain("Muster's server has not answered for long, and no task was started: " +
                      line_.last_failure());
    return leave(kNoServer);
  }
  options_.complain("Muster's server has not answered since the task ended: " +
                    line_.last_failure());
  if (!task_->is_shared()) {
    options_.complain("artifacts that the server has not fetched are left in " + task_->folder() +
                      " on node " + options_.site.facts.node);
  }
  leave(task_->end()->status.shell_code());
}

void Agent::leave_files() {
  const bool keeps_artifacts = farewell_->keeps_artifacts && !task_->is_shared();
  task_->remove_files(keeps_artifacts);
  if (!keeps_artifacts) return;
  options_.complain("Muster's server could not fetch the artifacts; they are left in " +
                    task_->artifacts_folder() + " on node " + options_.site.facts.node);
}

void Agent::leave(int code) {
  if (farewell_ && task_ && task_->has_ended()) leave_files();
  if (farewell_) send(LeftNews{});
  line_.close();
  ending_.reset();
  for_programs_.reset();
  const auto leave = std::exchange(options_.leave, nullptr);
  if (leave) leave(code);
}

}  // namespace muster::engine::node
