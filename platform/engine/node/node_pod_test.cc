// muster-node in a pod that the server connects to: as process 1 of an image without any file, as an
// ordinary account without rights.
#include "engine/node/folder_streams.h"
#include "engine/node/test_pod.h"

namespace muster::engine::node {
namespace {

using NodeInPod = TestPodServer;

TEST_F(NodeInPod, ReportsItsPodAndItsImage) {
  run_pod({.variables = {{"NVIDIA_VISIBLE_DEVICES", "GPU-a,GPU-b"}}});
  meet();

  const Hello hello = line_->hello();
  EXPECT_EQ(hello.facts.node, "n1");
  EXPECT_EQ(hello.facts.index, 4);
  EXPECT_EQ(hello.facts.instance, "5eed-uid");
  EXPECT_EQ(hello.facts.gpus, (std::vector<std::string>{"GPU-a", "GPU-b"}));
  EXPECT_EQ(hello.facts.gpu_indices, (std::vector<int>{0, 1}));
  EXPECT_EQ(hello.address, "10.1.2.3");
  ASSERT_TRUE(hello.image);
  EXPECT_EQ(hello.image->account,
            (launch::Account{.uid = 1000, .gid = 1000, .name = "", .home = "/"}));
  EXPECT_EQ(hello.image->folder, "/");
  EXPECT_EQ(hello.image->environment.at("IMAGE_SAYS"), "hello");
  EXPECT_EQ(hello.image->environment.count(kPodUid), 0U);
  EXPECT_EQ(hello.image->environment.count("KUBERNETES_SERVICE_HOST"), 0U);
  EXPECT_FALSE(hello.image->has_shell);
  EXPECT_EQ(hello.image->sshd, "");
  EXPECT_FALSE(std::filesystem::exists(pod_folder() / "brief")) << "the task could read the key";
  dismiss_pod(5);
}

TEST_F(NodeInPod, RunsATaskInAnEmptyImage) {
  run_pod();
  meet();
  StartOrder asked = pod_order({"/program", "cat"});
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  asked.plan.argv = {"/program", "print", "out\n", "err\n"};
  start_in_pod(asked);

  const TaskEnded end = wait_in_pod_for<EndedNews>().end;

  EXPECT_EQ(end.status, job::ExitStatus{});
  EXPECT_NE(log().find("out\n"), std::string::npos) << log();
  EXPECT_NE(log().find("err\n"), std::string::npos) << log();
  dismiss_pod(7);
}

TEST_F(NodeInPod, AProgramBesideTheTaskHasAStreamOfItsOwn) {
  run_pod();
  meet();
  StartOrder asked = pod_order({"/program", "wait"});
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  asked.plan.folders = {"ssh"};
  asked.plan.environment["SECRET"] = "of the task";
  start_in_pod(asked);

  line_->send(ExecOrder{11, {.argv = {"/program", "cat"}, .environment = {}}});
  PodProgram cat;
  connect_program(11, cat);
  cat.exec->write("input");
  cat.exec->close_input();
  wait_in_pod([&] { return cat.status.has_value(); });
  line_->send(ExecOrder{12, {.argv = {"/program", "show", "SECRET"}, .environment = {}}});
  PodProgram show;
  connect_program(12, show);
  wait_in_pod([&] { return show.status.has_value(); });
  line_->send(
      ExecOrder{13, {.argv = {"/program", "stat", "/generated/hostfile"}, .environment = {}}});
  PodProgram stat;
  connect_program(13, stat);
  wait_in_pod([&] { return stat.status.has_value(); });
  line_->send(ExecOrder{14, {.argv = {"/program", "capabilities"}, .environment = {}}});
  PodProgram rights;
  connect_program(14, rights);
  wait_in_pod([&] { return rights.status.has_value(); });

  EXPECT_EQ(cat.output, "input");
  EXPECT_EQ(cat.status->code, 0);
  EXPECT_EQ(show.output, "of the task");
  EXPECT_EQ(stat.output, "0600 1000:1000 f");
  EXPECT_NE(rights.output.find("CapEff:\t0000000000000000"), std::string::npos) << rights.output;
  line_->send(StopOrder{StopMode::kGraceful});
  const TaskEnded end = wait_in_pod_for<EndedNews>().end;
  EXPECT_EQ(end.status.code, 15);
  EXPECT_TRUE(end.status.stopped);
  dismiss_pod(0);
}

TEST_F(NodeInPod, UsersReachTheTasksOwnProgramAndItsFiles) {
  run_pod();
  meet();
  StartOrder asked = pod_order({"/program", "cat"});
  asked.plan.input = true;
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  asked.first_sample_ms = 1;
  asked.sample_interval_ms = 20;
  start_in_pod(asked);

  line_->send(
      ExecOrder{15, {.helper = Helper::kPack, .argv = {"/generated/hostfile"}, .environment = {}}});
  PodProgram pack;
  connect_program(15, pack);
  wait_in_pod([&] { return pack.status.has_value(); });
  line_->send(ChangeOrder{
      4, {.task = "main", .files = {{.path = "hostfile", .content = "b\n"}}, .hosts = {}}});
  const auto changed = wait_in_pod_for<ChangeAnswer>();
  line_->send(
      ExecOrder{16, {.helper = Helper::kPack, .argv = {"/generated/hostfile"}, .environment = {}}});
  PodProgram packed_again;
  connect_program(16, packed_again);
  wait_in_pod([&] { return packed_again.status.has_value(); });
  line_->send(AttachOrder{17});
  PodProgram attached;
  connect_program(17, attached);
  attached.exec->write("to the task");
  wait_in_pod([&] { return log() == "to the task"; });

  EXPECT_EQ(pack.status->code, 0) << pack.error;
  EXPECT_NE(pack.output.find("a slots=1\n"), std::string::npos);
  EXPECT_FALSE(changed.error) << changed.error->to_string();
  EXPECT_NE(packed_again.output.find("b\n"), std::string::npos);
  attached.exec->close_input();
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 0);
  const bool has_metrics = std::any_of(news_.begin(), news_.end(), [](const NodeNews& each) {
    const auto* const record = std::get_if<RecordNews>(&each);
    return record != nullptr && record->record.kind == FollowKind::kMetrics;
  });
  EXPECT_TRUE(has_metrics);
  dismiss_pod(0);
}

TEST_F(NodeInPod, AStreamMayBeConnectedBeforeItsOrderArrives) {
  run_pod();
  meet();
  start_in_pod(pod_order({"/program", "wait"}));
  Dialled early;
  const auto call = dial_node(loop_.loop(), stream_to_pod(),
                              {.gang = gang_, .key = key_, .stream = 21}, loop_.into(early));
  // An order and its answer, so that the early connection has arrived.
  line_->send(ChangeOrder{1, {.task = "main", .files = {}, .hosts = {}}});
  wait_in_pod_for<ChangeAnswer>();
  EXPECT_FALSE(early);

  line_->send(ExecOrder{21, {.argv = {"/program", "exit", "3"}, .environment = {}}});

  wait_in_pod([&] { return early.has_value(); });
  EXPECT_TRUE(*early) << early->error().to_string();
  early.reset();
  line_->send(StopOrder{StopMode::kNow});
  wait_in_pod_for<EndedNews>();
  dismiss_pod(0);
}

const std::vector<std::string> kShell{"--ro-bind", "/usr",      "/usr",      "--symlink",
                                      "usr/bin",   "/bin",      "--symlink", "usr/lib",
                                      "/lib",      "--symlink", "usr/lib64", "/lib64"};

/// A task that ends once a program beside it has ended, and that program's script.
constexpr const char* kUntilTheProgramEnds =
    "while [ ! -s /generated/pid ]; do sleep 0.02; done; "
    "while kill -0 $(cat /generated/pid) 2>/dev/null; do sleep 0.02; done";
constexpr const char* kEndsTheTask = "echo $$ >/generated/pid; echo bye; exit 7";

TEST_F(NodeInPod, AProgramThatLetsTheTaskEndHasItsExitCode) {
  run_pod({.more_words = kShell});
  meet();
  StartOrder asked = pod_order({"/bin/sh", "-c", kUntilTheProgramEnds});
  asked.plan.environment["PATH"] = "/bin";
  start_in_pod(asked);
  line_->send(ExecOrder{11, {.argv = {"/bin/sh", "-c", kEndsTheTask}, .environment = {}}});
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status, job::ExitStatus{});
  line_->send(Farewell{0});
  // After an order and its answer, the muster-node had enough time to leave.
  line_->send(ChangeOrder{1, {.task = "main", .files = {}, .hosts = {}}});
  wait_in_pod_for<ChangeAnswer>();

  PodProgram program;  // the server connects its stream only now
  connect_program(11, program);
  wait_in_pod([&] { return program.status.has_value(); });

  EXPECT_EQ(program.status->code, 7);
  EXPECT_EQ(program.output, "bye\n");
  wait_for_pods_end();
  EXPECT_EQ(pod_->code(), 0) << pod_->complaints();
}

TEST_F(NodeInPod, DoesNotWaitForAProgramThatNoServerConnects) {
  run_pod({.more_words = kShell});
  meet();
  StartOrder asked = pod_order({"/bin/sh", "-c", kUntilTheProgramEnds});
  asked.plan.environment["PATH"] = "/bin";
  start_in_pod(asked);
  line_->send(ExecOrder{11, {.argv = {"/bin/sh", "-c", kEndsTheTask}, .environment = {}}});
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status, job::ExitStatus{});

  dismiss_pod(3);
}

TEST_F(NodeInPod, TheLogIsCompleteOverManyLostConnections) {
  run_pod({.more_words = kShell});
  meet();
  StartOrder asked = pod_order(
      {"/bin/sh", "-c", "i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done"});
  asked.plan.environment["PATH"] = "/bin";
  start_in_pod(asked);
  size_t meetings = 1;
  while (find<EndedNews>() == nullptr) {
    const size_t before = news_.size();
    // At most 64 KiB of the 650 come at once, so that the connection is lost several times.
    wait_in_pod([&] { return news_.size() > before || find<EndedNews>() != nullptr; });
    if (find<EndedNews>() != nullptr || meetings > 40) break;
    line_.reset();
    ++meetings;
    meet();
  }
  const TaskEnded end = wait_in_pod_for<EndedNews>().end;

  EXPECT_EQ(end.status.code, 0);
  EXPECT_GT(meetings, 2U);
  std::string whole;
  for (int i = 0; i < 60000; ++i) whole += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(log(), whole);
  dismiss_pod(0);
}

TEST_F(NodeInPod, ANewConnectionOfTheServerReplacesTheOld) {
  run_pod();
  meet();
  start_in_pod(pod_order({"/program", "wait"}));
  const auto old = line_;
  line_ = nullptr;  // is not closed, because a server that was cut off does not detect this
  meet();

  EXPECT_TRUE(line_->hello().holds_task);
  line_->send(StopOrder{StopMode::kNow});
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.signal, SIGKILL);
  dismiss_pod(0);
}

TEST_F(NodeInPod, StrangersGetNowhereAndDisturbNothing) {
  run_pod();
  rsh::Key other = key_;
  other[0] = static_cast<unsigned char>(other[0] + 1);
  const auto refused = dial(0, other);
  ASSERT_TRUE(refused && !*refused);
  EXPECT_EQ(refused->error().code, base::ErrorCode::kRefused);
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(socket_to_pod());
  const base::UniqueFd noise = socket_to_pod();
  EXPECT_TRUE(base::write_all(noise.get(), std::string(4096, 'x')));

  meet();

  start_in_pod(pod_order({"/program", "exit", "4"}));
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 4);
  dismiss_pod(4);
}

TEST_F(NodeInPod, ASignalOfTheKubeletIsReportedBeforeTheEnd) {
  run_pod();
  meet();
  start_in_pod(pod_order({"/program", "wait"}));
  wait_in_pod([&] { return log().find("ready") != std::string::npos; });

  ASSERT_EQ(::kill(pod_->process_one(), SIGTERM), 0);

  const TaskEnded end = wait_in_pod_for<EndedNews>().end;
  EXPECT_EQ(end.status.code, 15);
  const auto is_signal = [](const NodeNews& each) {
    return std::holds_alternative<SignalledNews>(each);
  };
  const auto is_end = [](const NodeNews& each) { return std::holds_alternative<EndedNews>(each); };
  EXPECT_LT(std::find_if(news_.begin(), news_.end(), is_signal),
            std::find_if(news_.begin(), news_.end(), is_end));
  dismiss_pod(0);
}

/// The first child of a process.
pid_t child_of(pid_t process) {
  const std::string pid = std::to_string(process);
  const auto children = base::read_file("/proc/" + pid + "/task/" + pid + "/children");
  if (!children) return -1;
  return base::number_of<pid_t>(children->substr(0, children->find(' '))).value_or(-1);
}

/// Whether a signal that was sent to the process has not been handled yet.
bool has_pending_signal(pid_t process, int signal) {
  const auto status = base::read_file("/proc/" + std::to_string(process) + "/status");
  const std::string name = "ShdPnd:\t";
  const size_t at = status ? status->find(name) : std::string::npos;
  if (at == std::string::npos) return false;
  const unsigned long long mask = std::stoull(status->substr(at + name.size(), 16), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

/// A drained node ends a pod whose task has ended and whose artifacts are being fetched.
TEST_F(NodeInPod, ASignalAfterTheEndIsNotReported) {
  run_pod();
  meet();
  start_in_pod(pod_order({"/program", "exit", "4"}));
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 4);
  const pid_t node = child_of(pod_->process_one());
  ASSERT_GT(node, 1);

  ASSERT_EQ(::kill(node, SIGTERM), 0);

  base::EventLoop::Interest ticking;
  const std::function<void()> tick = [&] {
    loop_.look();
    ticking = loop_.loop().after(std::chrono::milliseconds(2), tick);
  };
  tick();
  wait_in_pod([&] { return !has_pending_signal(node, SIGTERM); });
  ticking.reset();
  line_->send(ChangeOrder{.number = 5, .change = {.task = "main"}});
  EXPECT_EQ(wait_in_pod_for<ChangeAnswer>().number, 5U);
  EXPECT_EQ(find<SignalledNews>(), nullptr);
  line_.reset();
  news_.clear();
  meet();
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 4);
  EXPECT_EQ(find<SignalledNews>(), nullptr);
  dismiss_pod(4);
}

TEST_F(NodeInPod, LeavesBeforeTheKubeletKillsItIfTheServerIsAway) {
  run_pod({.variables = {{kPodGrace, "3"}}});
  meet();
  start_in_pod(pod_order({"/program", "wait"}));
  wait_in_pod([&] { return log().find("ready") != std::string::npos; });
  line_.reset();

  ASSERT_EQ(::kill(pod_->process_one(), SIGTERM), 0);

  wait_for_pods_end();
  EXPECT_EQ(pod_->code(), 128 + SIGTERM);
  EXPECT_NE(pod_->complaints().find("Kubernetes ends the job, and Muster's server does not answer"),
            std::string::npos)
      << pod_->complaints();
}

TEST_F(NodeInPod, CallsTheServerThatItsBriefNames) {
  open();
  run_pod(TestServer::brief());
  wait_in_pod([&] { return line_ != nullptr; });
  EXPECT_TRUE(line_->hello().image);

  start_in_pod(pod_order({"/program", "exit", "6"}));

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 6);
  dismiss_pod(6);
}

TEST_F(NodeInPod, WithoutATaskTheSignalEndsIt) {
  run_pod();
  meet();

  ASSERT_EQ(::kill(pod_->process_one(), SIGTERM), 0);

  wait_for_pods_end();
  EXPECT_EQ(pod_->code(), 128 + SIGTERM);
}

TEST_F(NodeInPod, WaitsForTheServerAfterTheEnd) {
  run_pod();
  meet();
  start_in_pod(pod_order({"/program", "print", "the last byte", ""}));
  line_.reset();
  news_.clear();
  meet();

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 0);

  EXPECT_EQ(log(), "the last byte");
  dismiss_pod(0);
}

TEST_F(NodeInPod, GivesUpWhenTheServerStaysAway) {
  NodeBrief brief = pod_brief();
  brief.linger = std::chrono::milliseconds(100);
  run_pod(brief);

  wait_for_pods_end();

  EXPECT_EQ(pod_->code(), 1);
  EXPECT_NE(pod_->complaints().find("cannot reach Muster's server from node n1"), std::string::npos)
      << pod_->complaints();
}

TEST_F(NodeInPod, FilesOfTheJobGoToItsVolumesAndArtifactsComeBack) {
  run_pod({.more_words = {"--tmpfs", "/code", "--tmpfs", "/artifacts"}});
  meet();
  std::filesystem::create_directories(folder_ / "tree");
  ASSERT_TRUE(base::write_file(folder_ / "tree" / "train.py", "print()"));
  StartOrder asked = pod_order({"/program", "write", "/artifacts/model"});
  asked.plan.volumes = {
      {.kind = job::Volume::Kind::kTree, .source = "tree-1", .target = "/code", .read_only = true},
      {.kind = job::Volume::Kind::kArtifacts, .source = "", .target = "/artifacts"}};
  asked.trees = {31, 0};
  auto mirror = Mirror::open({folder_ / "jobs" / "job-1" / "2" / "main"}, 0);
  ASSERT_TRUE(mirror);
  mirror_.emplace(*std::move(mirror));
  FolderSender sender;
  line_->send(asked);
  meet_stream(31);
  sender.send(std::exchange(streams_[31], nullptr), folder_ / "tree");
  const auto answer = wait_in_pod_for<StartAnswer>();
  ASSERT_FALSE(answer.error) << answer.error->to_string();
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 0) << log();

  line_->send(ArtifactsOrder{32});
  meet_stream(32);
  FolderReceiver receiver(loop_.loop());
  std::optional<Result<void>> received;
  std::filesystem::create_directories(folder_ / "got");
  receiver.receive(std::exchange(streams_[32], nullptr), folder_ / "got", 0, [&](Result<void> how) {
    received = std::move(how);
    loop_.look();
  });
  wait_in_pod([&] { return received.has_value(); });

  EXPECT_TRUE(*received) << received->error().to_string();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "got" / "model"));
  dismiss_pod(0);
}

TEST_F(NodeInPod, ALinkThatTheReadOnlyRootRefusesIsNoted) {
  run_pod();
  meet();
  StartOrder asked = pod_order({"/program", "exit", "0"});
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  asked.plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  start_in_pod(asked);

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 0);

  EXPECT_NE(log().find("cannot make the link /etc/mpi/hostfile to /generated/hostfile: Read-only"),
            std::string::npos)
      << log();
  dismiss_pod(0);
}

TEST_F(NodeInPod, LinksFilesWhereTheRootIsWritable) {
  run_pod({.is_writable = true});
  meet();
  StartOrder asked = pod_order({"/program", "wait"});
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  asked.plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  start_in_pod(asked);
  line_->send(
      ExecOrder{41, {.argv = {"/program", "stat", "/etc/mpi/hostfile"}, .environment = {}}});
  PodProgram stat;
  connect_program(41, stat);
  wait_in_pod([&] { return stat.status.has_value(); });

  EXPECT_EQ(stat.output, "0777 1000:1000 o");
  line_->send(StopOrder{StopMode::kNow});
  wait_in_pod_for<EndedNews>();
  dismiss_pod(0);
}

TEST_F(NodeInPod, ATaskCanStartAgainAfterAFailedStart) {
  run_pod();
  meet();
  StartOrder asked = pod_order({"/program", "exit", "3"});
  asked.plan.files = {{.path = "hostfile", .content = "a\n"}};
  asked.programs = "/nowhere";
  line_->send(asked);
  EXPECT_TRUE(wait_in_pod_for<StartAnswer>().error);
  news_.clear();

  asked.programs = "/programs";
  start_in_pod(asked);

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 3);
  dismiss_pod(0);
}

TEST_F(NodeInPod, ABridgeLeadsToThePort) {
  run_pod();
  [[maybe_unused]] const base::UniqueFd listens = socket_to_pod();
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  auto bridge = base::spawn({.argv = {MUSTER_NODE, "--bridge", std::to_string(pod_port_)},
                             .environment = {},
                             .descriptors = {{theirs.get(), 0}, {theirs.get(), 1}}});
  ASSERT_TRUE(bridge);
  theirs.reset();
  Dialled answer;
  const auto call = dial_node(loop_.loop(), stream_on(loop_.loop(), std::move(ours)),
                              {.gang = gang_, .key = key_}, loop_.into(answer));
  wait_in_pod([&] { return answer.has_value(); });
  ASSERT_TRUE(*answer) << answer->error().to_string();
  take(**std::move(answer));

  start_in_pod(pod_order({"/program", "print", "over the bridge", ""}));
  wait_in_pod_for<EndedNews>();

  EXPECT_EQ(log(), "over the bridge");
  dismiss_pod(0);
  const auto status = base::wait_for(*bridge);
  EXPECT_TRUE(status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
}

}  // namespace
}  // namespace muster::engine::node
