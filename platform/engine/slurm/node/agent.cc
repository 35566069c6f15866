#include "engine/slurm/node/agent.h"

#include <algorithm>
#include <utility>

namespace muster::engine::slurm {

namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{5'000};
/// Between hello and welcome.
constexpr std::chrono::seconds kWelcomePatience{20};
/// For a task that is ended at once, because nobody wants it any more.
constexpr std::chrono::seconds kUnwantedTaskGrace{20};
/// Slurm kills what is still there KillWait after its signal, which is 30 s where nobody has chosen
/// otherwise.
constexpr std::chrono::seconds kBeforeTheKill{20};
constexpr std::chrono::milliseconds kAfterItsStop{200};
constexpr int kSignalBase = 128;
constexpr int kNobodyCame = 1;

}  // namespace

Agent::Agent(base::EventLoop& loop, AgentOptions options)
    : loop_(loop), options_(std::move(options)), calls_(loop, options_.brief), pause_(kFirstPause) {
  if (options_.shares_folder) calls_.set_shares_folder();
}

Agent::~Agent() = default;

void Agent::begin() {
  call();
}

Hello Agent::hello(uint64_t stream) const {
  const StepFacts& facts = options_.facts;
  return {.stream = stream,
          .component = facts.component,
          .index = facts.index,
          .slurm_job = facts.slurm_job,
          .restarts = facts.restarts,
          .node = facts.node,
          .address = {},
          .shares_folder = options_.shares_folder,
          .gpus = facts.gpus,
          .gpu_indices = facts.gpu_indices,
          .version = options_.version,
          .holds_task = task_ && !task_->failed_to_start()};
}

// --- the connection for orders

void Agent::call() {
  timer_.reset();
  calling_ = calls_.call(hello(0), [this](Line line) { called(std::move(line)); });
}

void Agent::called(Line line) {
  if (!line) {
    last_why_ = line.error().what;
    return call_later();
  }
  line_ = *std::move(line);
  line_->listen({.on_message = [this](const NodeMessage& message) { heed(message); },
                 .on_end = [this](const std::string& why) { line_is_gone(why); },
                 .on_drain =
                     [this] {
                       if (task_) task_->pause_telling(false);
                     }});
  patience_ = loop_.after(kWelcomePatience, [this] { line_is_gone("does not answer"); });
}

void Agent::line_is_gone(const std::string& why) {
  patience_.reset();
  if (is_welcome_) heard_last_ = Steady::now();
  is_welcome_ = false;
  last_why_ = "the server " + why;
  loop_.post([line = std::exchange(line_, nullptr)] {});  // it may be in the midst of calling
  if (task_) task_->server_is_gone();
  call_later();
}

void Agent::call_later() {
  if (farewell_) return;
  if (!waits_for_task() && Steady::now() - heard_last_ >= options_.brief.linger) return give_up();
  timer_ = loop_.after(pause_, [this] { call(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Agent::say(const NodeNews& news) {
  const bool is_end = std::holds_alternative<EndedNews>(news);
  if (is_end && !signal_ && options_.look_for_signals) options_.look_for_signals();
  if (!is_welcome_ || !line_) return;
  line_->send(news);
  if (task_ && line_->waiting() > NodeConnection::kHigh) task_->pause_telling(true);
}

std::shared_ptr<void> Agent::open_stream(uint64_t stream, std::function<void(Line)> then) {
  return calls_.call(hello(stream), std::move(then));
}

// --- orders

void Agent::heed(const NodeMessage& message) {
  const auto* const order = std::get_if<NodeOrder>(&message);
  if (order == nullptr) return;  // news are for the other end
  std::visit([this](const auto& each) { heed(each); }, *order);
}

void Agent::heed(const Welcome& welcome) {
  patience_.reset();
  pause_ = kFirstPause;
  is_welcome_ = was_ever_welcome_ = true;
  heard_last_ = Steady::now();
  if (signal_) say(SignalledNews{*signal_});
  welcome_ = welcome;
  // Of a start that has failed nothing is left: the server has heard it, or orders it again.
  if (task_ && !task_->failed_to_start()) task_->tell_anew(welcome);
}

void Agent::heed(const StartOrder& order) {
  if (task_ && !task_->has_ended()) {
    return say(StartAnswer{
        base::Error{.code = base::ErrorCode::kConflict,
                    .what = "task " + order.plan.task + " of this attempt was started before"}});
  }
  if (task_) task_->remove_what_is_left();
  task_ = std::make_unique<NodeTask>(
      loop_, Gang{options_.brief.caller.gang.job_id, order.attempt}, options_.facts, order,
      [this](const NodeNews& news) { say(news); },
      [this](uint64_t stream, std::function<void(Line)> then) {
        return open_stream(stream, std::move(then));
      });
  task_->on_end([this] { leave_if_done(); });
  task_->tell_anew(welcome_);
  task_->start();
  if (signal_) task_->stop(StopMode::kGraceful);
}

void Agent::heed(const StopOrder& order) {
  if (task_) task_->stop(order.mode);
}

void Agent::heed(const ChangeOrder& order) {
  if (task_) return task_->change(order);
  say(ChangeAnswer{order.number, std::nullopt});
}

void Agent::heed(const ExecOrder& order) {
  if (task_) return task_->exec(order);
  say(StreamRefused{order.stream,
                    {.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
}

void Agent::heed(const AttachOrder& order) {
  if (task_) return task_->attach(order);
  say(StreamRefused{order.stream,
                    {.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
}

void Agent::heed(const ArtifactsOrder& order) {
  if (task_) return task_->send_artifacts(order);
  say(StreamRefused{order.stream,
                    {.code = base::ErrorCode::kNotFound, .what = "the task was never started"}});
}

void Agent::heed(const Farewell& farewell) {
  farewell_ = farewell;
  leave_if_done();
  if (!waits_for_task()) return;
  task_->stop(StopMode::kNow);
  ending_ = loop_.after(kUnwantedTaskGrace, [this] { leave(farewell_->code); });
}

// --- the end

void Agent::heed_signal(int signal) {
  signal_ = signal;
  say(SignalledNews{signal});
  if (task_) {
    before_the_kill_ = loop_.after(kBeforeTheKill, [this] { leave_nothing(); });
    return task_->stop(StopMode::kGraceful);
  }
  // Later: what was said is to arrive.
  loop_.post([this] { leave(kSignalBase + *signal_); });
}

/// A server that is away does not come in time, and what is in a folder of the node's own, keys
/// among it, would stay there.
void Agent::leave_nothing() {
  if (is_welcome_ || !task_ || task_->is_shared()) return;
  if (!task_->has_ended()) {
    task_->stop(StopMode::kNow);
    before_the_kill_ = loop_.after(kAfterItsStop, [this] { leave_nothing(); });
    return;
  }
  options_.complain(
      "Slurm ends the job, and the server of Muster does not answer: what it has not heard is "
      "lost: " +
      last_why_);
  task_->remove_what_is_left();
  leave(kSignalBase + *signal_);
}

void Agent::leave_if_done() {
  if (!farewell_ || waits_for_task()) return;
  // Later: the task may be in the midst of telling this.
  loop_.post([this] { leave(farewell_->code); });
}

void Agent::give_up() {
  if (!was_ever_welcome_) {
    options_.complain("no server of Muster was found from node " + options_.facts.node + ": " +
                      last_why_);
    return leave(kNobodyCame);
  }
  if (!task_ || !task_->end()) {
    options_.complain("the server of Muster has not answered for long, and nothing was started: " +
                      last_why_);
    return leave(kNobodyCame);
  }
  options_.complain("the server of Muster has not answered since the task ended: " + last_why_);
  if (!task_->is_shared()) {
    options_.complain("what it has not fetched is left in " + task_->folder() + " on node " +
                      options_.facts.node);
  }
  leave(task_->end()->status.shell_code());
}

void Agent::leave(int code) {
  if (farewell_ && task_ && task_->has_ended()) task_->remove_what_is_left();
  line_.reset();
  timer_.reset();
  patience_.reset();
  ending_.reset();
  calling_.reset();
  const auto leave = std::exchange(options_.leave, nullptr);
  if (leave) leave(code);
}

}  // namespace muster::engine::slurm
