#include "control/random_world.h"

#include "engine/engine.h"
#include "words/test_words.h"

namespace muster::control {

using engine::GangId;
using job::Job;
using job::JobSpec;
using job::Kind;
using job::Phase;

namespace {

constexpr int kEnoughRounds = 24;  // of the loop, until an event has had all of its effects

std::vector<job::Project> some_projects() {
  const auto limited = [](job::Project project, int64_t gpus) {
    project.quota.limit.gpu_milli = gpus * 1000;
    return project;
  };
  job::Project below = limited(project_of("lab-a", 1), 3);
  below.parent = "lab";
  job::Project beside = project_of("lab-b", 0);
  beside.parent = "lab";
  return {project_of("team-a", 2), limited(project_of("team-b", 1), 2),
          limited(project_of("lab", 2), 4), below, beside};
}

}  // namespace

RandomWorld::RandomWorld(uint64_t seed, Machines machines)
    : dice_(seed),
      in_images_(machines == Machines::kInImages),
      at_cluster_(machines == Machines::kAtCluster),
      keeps_seeds_(seed % 4 > 1),
      random_(seed) {
  const int count = 1 + dice_.below(3);
  for (int i = 0; i < count; ++i) {
    all_nodes_.push_back(engine::fake_node("n" + std::to_string(i), 1 + dice_.below(4)));
    if (dice_.one_in(4)) all_nodes_.back().pool = "second";
    if (dice_.one_in(4)) all_nodes_.back().task_slots = 3;
  }
  be_born();
  engine_->offered = all_nodes_;
  engine_->set_nodes(all_nodes_);
  EXPECT_TRUE(controller_->recover());
  for (const job::Project& project : some_projects()) {
    EXPECT_TRUE(controller_->projects().create(project));
    const auto& limit = project.quota.limit.gpu_milli;
    if (limit && project.name != "team-b") fixed_limits_[project.name] = *limit;
  }
}

RandomWorld::~RandomWorld() {
  controller_ = nullptr;  // before the objects that it refers to
}

void RandomWorld::be_born() {
  auto loop = std::make_unique<base::EventLoop>();
  auto engine = std::make_unique<WatchedEngine>(*loop);
  if (engine_) {
    engine->take_over(*engine_);
    engine->stopping = engine_->stopping;
    engine->hostfiles = engine_->hostfiles;
    engine->given = engine_->given;
  }
  controller_ = nullptr;
  accounts_ = nullptr;
  engine_ = std::move(engine);
  loop_ = std::move(loop);
  engine_->stops_obey = false;
  engine_->images = in_images_;
  engine_->asks = at_cluster_;
  engine_->on_ask = [this](const GangId& gang) { look_at_what_is_asked(gang); };
  engine_->on_give_back = [this](const GangId& gang) { look_at_what_is_given_back(gang); };
  engine_->on_start = [this](const GangId& gang, const std::vector<launch::TaskPlan>& tasks) {
    look_at_start(gang, tasks);
  };
  accounts_ = nullptr;
  if (keeps_seeds_) {
    accounts_ = std::make_unique<Accounts>(Accounts::Dependencies{
        .loop = *loop_, .store = store_, .clock = clock_, .random = random_, .box = box_});
  }
  controller_ = std::make_unique<Controller>(ControllerDependencies{.loop = *loop_,
                                                                    .store = store_,
                                                                    .engine = *engine_,
                                                                    .clock = clock_,
                                                                    .random = random_,
                                                                    .accounts = accounts_.get()},
                                             SiteFacts{.user = "ada"});
  controller_->keep_whole(static_cast<size_t>(store_.commits % 4));
  controller_->set_resize_pace(
      {.notice = std::chrono::milliseconds(0), .rest = std::chrono::milliseconds(0)});
}

void RandomWorld::die_and_return() {
  store_.dies_before = store_.dies_after = 0;
  store_.full = false;
  be_born();
  if (dice_.one_in(4)) something_ends();
  if (dice_.one_in(6)) lose(dice_.any_of(all_nodes_).name, false);
  if (dice_.one_in(4)) store_.dies_after = store_.commits + 1 + dice_.below(2);
  guarded([this] {
    EXPECT_TRUE(controller_->recover());
    turn(dice_.below(4));
  });
}

void RandomWorld::guarded(const std::function<void()>& action) {
  try {
    action();
  } catch (const Crash&) {
    die_and_return();
  }
}

void RandomWorld::turn(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    loop_->post([this] { loop_->stop(); });
    loop_->run();
  }
}

void RandomWorld::live(int steps) {
  for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
    guarded([this] {
      step();
      const bool is_settled = !dice_.one_in(3);
      turn(is_settled ? kEnoughRounds : dice_.below(4));
      look();
      if (!is_settled) return;
      if (at_cluster_) look_at_allocations();
      look_at_standing();
      for (const Job* job : controller_->jobs().list()) look_at_sent_members(*job);
    });
  }
}

void RandomWorld::step() {
  if (at_cluster_ && dice_.one_in(3)) return the_cluster_acts();
  const int what = dice_.below(100);
  if (what < 24) return submit();
  if (what < 38) return workers_answer(1 + dice_.below(2));
  if (what < 52) return something_ends();
  if (what < 66) return stops_are_obeyed(1 + dice_.below(2));
  if (what < 80) return ask_of_a_job();
  if (what < 84) return change_projects();
  if (what < 91) return change_nodes();
  if (what < 93) return ask_questions();
  break_something();
}

// --- users

JobSpec RandomWorld::any_spec() {
  const bool again = next_job_ > 0 && dice_.one_in(8);
  const std::string name = "j" + std::to_string(again ? dice_.below(next_job_) : next_job_++);
  const std::string project = dice_.any_of(leaves());
  JobSpec spec = dice_.one_in(2) ? mpi(name, project, 1 + dice_.below(4))
                                 : single(name, project, dice_.below(3));
  if (in_images_) spec.image = "image";
  if (dice_.one_in(4)) spec.resources = {.gpu_share_milli = 250 * (1 + dice_.below(3))};
  if (dice_.one_in(3)) spec.resources.cpu_milli = int64_t{4000} * (1 + dice_.below(2));
  job::Scheduling& scheduling = spec.scheduling;
  if (spec.kind == Kind::kMpi && dice_.one_in(2)) {
    scheduling.min_workers = 1 + dice_.below(spec.workers);
    if (*scheduling.min_workers < spec.workers && dice_.one_in(2))
      scheduling.resize = job::Resize::kLive;
  }
  if (dice_.one_in(5)) scheduling.purpose = job::Purpose::kBuild;
  if (dice_.one_in(4)) scheduling.priority = 40 + dice_.below(70);
  if (dice_.one_in(3)) scheduling.retries = 1 + dice_.below(2);
  if (dice_.one_in(6)) scheduling.node_pools = {dice_.one_in(2) ? "second" : "default"};
  if (dice_.one_in(4)) scheduling.packing = job::Packing::kSpread;
  return spec;
}

void RandomWorld::submit() {
  const std::string key = dice_.one_in(3) ? "key" + std::to_string(dice_.below(20)) : "";
  if (dice_.one_in(2)) {
    controller_->submit(any_spec(), key, [](const Result<Job>&) {});
  } else {
    [[maybe_unused]] const auto may_be_refused = controller_->submit(any_spec(), key);
  }
}

std::string RandomWorld::any_job() {
  const auto jobs = controller_->jobs().list();
  return jobs.empty() ? "none" : dice_.any_of(jobs)->spec.name;
}

void RandomWorld::ask_of_a_job() {
  const std::string name = any_job();
  switch (dice_.below(8)) {
    case 0:
      static_cast<void>(controller_->stop(name, false));
      return;
    case 1:
      static_cast<void>(controller_->stop(name, true));
      return;
    case 2:
    case 3:
      static_cast<void>(controller_->suspend(name));
      return;
    case 4:
      static_cast<void>(controller_->remove(name));
      return;
    default:
      static_cast<void>(controller_->resume(name));
  }
}

void RandomWorld::change_projects() {
  switch (dice_.below(5)) {
    case 0:
      static_cast<void>(controller_->projects().create(project_of("extra", dice_.below(3))));
      return;
    case 1:
      static_cast<void>(controller_->projects().remove("extra"));
      return;
    case 2: {
      job::Project other = project_of("extra", 1);
      other.parent = dice_.one_in(2) ? "team-a" : "lab";
      static_cast<void>(controller_->projects().set(other));
      return;
    }
    default: {
      job::Project other = project_of("team-b", dice_.below(3));
      if (dice_.one_in(2)) other.quota.limit.gpu_milli = 1000 * (1 + dice_.below(3));
      static_cast<void>(controller_->projects().set(other));
    }
  }
}

void RandomWorld::ask_questions() {
  static_cast<void>(controller_->explain(any_job()));
  for (const Job* const waiting : controller_->queue()) {
    static_cast<void>(controller_->explain(waiting->id));
  }
  static_cast<void>(controller_->nodes().list());
  static_cast<void>(controller_->projects().list());
  JobSpec spec = any_spec();
  spec.name = "forecast";
  static_cast<void>(controller_->forecast(spec));
}

// --- machines and tasks

void RandomWorld::change_nodes() {
  const std::string name = dice_.any_of(all_nodes_).name;
  if (in_images_ && dice_.one_in(4)) return fall_silent(name);
  switch (dice_.below(7)) {
    case 0:
      static_cast<void>(controller_->nodes().cordon(name));
      return;
    case 1:
    case 2:
      static_cast<void>(controller_->nodes().uncordon(name));
      return;
    case 3:
      return drain_and_look();
    case 4:
      return lose(name, dice_.one_in(2));
    case 5: {
      std::vector<engine::Node> nodes = engine_->offered;
      if (nodes.empty()) return;
      engine::Node& node = nodes[static_cast<size_t>(dice_.below(static_cast<int>(nodes.size())))];
      node.gpus = std::max(0, node.gpus - 1);
      nodes_are_steady_ = false;
      return engine_->set_nodes(nodes);
    }
    default:
      engine_->set_nodes(all_nodes_);
  }
}

/// For a while: until the nodes are set again.
void RandomWorld::fall_silent(const std::string& name) {
  std::vector<engine::Node> nodes = engine_->offered;
  for (engine::Node& node : nodes) {
    if (node.name == name) engine::call_silent(node, clock_.now());
  }
  engine_->set_nodes(nodes);
}

void RandomWorld::drain_and_look() {
  const std::string name = dice_.any_of(all_nodes_).name;
  if (!controller_->nodes().drain(name)) return;
  for (int i = 0; i < 6; ++i) {
    turn(kEnoughRounds);
    stops_are_obeyed(1);
  }
  turn(kEnoughRounds);
  EXPECT_TRUE(engine_->tasks_on(name).empty()) << engine_->tasks_on(name).front();
}

void RandomWorld::lose(const std::string& node, bool tasks_are_reported) {
  nodes_are_steady_ = false;
  if (at_cluster_) return the_cluster_loses(node);
  if (tasks_are_reported) return engine_->lose_node(node);
  const std::set<TaskKey> before = engine_->running;
  for (const TaskKey& task : before) {
    if (engine_->plans.at(task).node != node) continue;
    engine_->ends[task] = {.lost = true};
    engine_->running.erase(task);
  }
  std::vector<engine::Node> rest = engine_->offered;
  std::erase_if(rest, [&](const engine::Node& one) { return one.name == node; });
  engine_->set_nodes(std::move(rest));
}

void RandomWorld::something_ends() {
  if (engine_->running.empty()) return;
  const TaskKey task = dice_.any_of(engine_->running);
  job::ExitStatus status;
  if (dice_.one_in(3)) status.code = 3;
  if (dice_.one_in(6)) status = {.lost = true};
  status.stopped = engine_->stopping.count(task) > 0;
  engine_->end_for_good(task.first, task.second, status);
}

void RandomWorld::leaders_end() {
  const std::set<TaskKey> running = engine_->running;
  for (const auto& [gang, task] : running) {
    if (task == "launcher") engine_->end_for_good(gang, task, {});
  }
}

void RandomWorld::workers_answer(int one_in) {
  const std::set<TaskKey> running = engine_->running;
  for (const auto& [gang, task] : running) {
    if (task.starts_with("worker") && dice_.one_in(one_in)) engine_->answer(gang, task);
  }
}

void RandomWorld::stops_are_obeyed(int one_in) {
  const std::set<TaskKey> stopping = engine_->stopping;
  for (const TaskKey& task : stopping) {
    if (!dice_.one_in(one_in)) continue;
    engine_->stopping.erase(task);
    if (engine_->running.count(task) == 0) continue;
    engine_->end_for_good(task.first, task.second, {.signal = 15, .stopped = true});
  }
}

void RandomWorld::break_something() {
  if (in_images_ && dice_.one_in(4)) {
    const bool ours = dice_.one_in(2);
    engine_->prepare_error = {
        .code = ours ? base::ErrorCode::kUnavailable : base::ErrorCode::kNotFound,
        .what = "cannot be fetched"};
    return;
  }
  switch (dice_.below(6)) {
    case 0:
      store_.dies_before = store_.commits + 1 + dice_.below(6);
      return;
    case 1:
      store_.dies_after = store_.commits + 1 + dice_.below(6);
      return;
    case 2:
      throw Crash{};
    case 3:
      store_.full = !store_.full;
      return;
    case 4: {
      const bool ours = dice_.one_in(2);
      engine_->start_errors[dice_.one_in(2) ? "worker-0" : "launcher"] = {
          .code = ours ? base::ErrorCode::kConflict : base::ErrorCode::kInvalid,
          .what = "cannot be started"};
      return;
    }
    default:
      clock_.advance(std::chrono::seconds(dice_.below(200)) * (dice_.one_in(3) ? -1000 : 1));
  }
}

void RandomWorld::come_to_rest() {
  store_.dies_before = store_.dies_after = 0;
  store_.full = false;
  engine_->start_errors.clear();
  engine_->prepare_error.reset();
  engine::Node wide = engine::fake_node("wide", 64);
  all_nodes_.push_back(wide);
  wide.name = "wide-too";
  wide.pool = "second";
  all_nodes_.push_back(wide);
  engine_->set_nodes(all_nodes_);
  for (const engine::Node& node : all_nodes_) EXPECT_TRUE(controller_->nodes().uncordon(node.name));
  for (const job::ProjectStatus& known : controller_->projects().list()) {
    job::Project rich = known.project;
    rich.quota = {.deserved = {.gpu_milli = 64'000}};
    EXPECT_TRUE(controller_->projects().set(rich));
  }
  fixed_limits_.clear();
  const auto is_at_rest = [](const Job* job) {
    return job::is_final(job->phase) || (job->suspended && job->phase == Phase::kQueued);
  };
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    turn(kEnoughRounds);
    look();
    the_cluster_serves_all();
    turn(kEnoughRounds);
    workers_answer(1);
    stops_are_obeyed(1);
    turn(kEnoughRounds);
    something_ends();
    if (i % 10 == 9) leaders_end();  // otherwise live gangs would replace ended workers for ever
    clock_.advance(std::chrono::seconds(61));
    engine_->set_nodes(all_nodes_);
  }
  turn(kEnoughRounds);
  EXPECT_TRUE(engine_->requests.empty() && engine_->given.empty());
  for (const Job* job : controller_->jobs().list()) {
    EXPECT_TRUE(is_at_rest(job)) << job->spec.name << " " << job::to_string(job->phase) << ": "
                                 << job->reason;
  }
}

}  // namespace muster::control
