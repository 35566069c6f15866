// muster-shim --container, mostly as an ordinary process that is not process 1. The tests create
// orphans themselves.
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/shim/process_tree.h"
#include "engine/shim/shim_fixture.h"
#include "engine/shim/task_port.h"

namespace muster::engine {
namespace {

job::ExitStatus end_in(const std::vector<FollowRecord>& records) {
  const auto record = decode_exit(bytes_of(records, FollowKind::kExit));
  EXPECT_TRUE(record);
  return record ? record->status : job::ExitStatus{};
}

/// Whether the shim receives SIGTERM itself, and is not ended by it.
bool blocks_stops(pid_t shim) {
  std::ifstream status("/proc/" + std::to_string(shim) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
  }
  return false;
}

TEST_F(ShimInContainer, ReportsStartOutputAndEnd) {
  FollowStream stream = start(script("echo out; echo err >&2; exit 3"));

  const auto records = stream.until(FollowKind::kExit);

  EXPECT_EQ(kinds_of(records), "rle");
  const std::string log = bytes_of(records, FollowKind::kLog);
  EXPECT_EQ(output_in(log), "out\n");
  EXPECT_EQ(output_in(log, job::LogStream::kError), "err\n");
  EXPECT_EQ(end_in(records), job::ExitStatus{.code = 3});
  const auto running = decode_running(records.front().bytes);
  ASSERT_TRUE(running);
  EXPECT_EQ(running->pid, child().pid);
}

TEST_F(ShimInContainer, OutlivesItsTaskUntilItIsStopped) {
  FollowStream stream = start(script("exit 0"));
  stream.until(FollowKind::kExit);
  EXPECT_EQ(stream.next(), std::nullopt) << "a record after the end";

  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child().pid), nullptr, WEXITED | WNOHANG | WNOWAIT),
            0);
  FollowStream again = follow();
  EXPECT_EQ(kinds_of(again.rest()), "re");
  EXPECT_EQ(await_end(1), 0);

  signal(SIGTERM);
  EXPECT_EQ(await_end(), 0);
}

TEST_F(ShimInContainer, AStopLeavesTheGracePeriod) {
  FollowStream stream =
      start(script("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.1; done"));
  stream.until(FollowKind::kLog);

  signal(SIGTERM);

  const auto records = stream.until(FollowKind::kExit);
  EXPECT_EQ(end_in(records), (job::ExitStatus{.code = 7, .stopped = true}));
  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog)), "bye\n");
}

// The folders imitate control groups; the kernel's file for CPUs is missing.
TEST_F(ShimInContainer, ATaskWhoseCpusCannotBeBoundKeepsItsOtherGroups) {
  const auto group = [&](const std::string& name, const std::string& file) {
    std::filesystem::create_directories(folder_ / name / "task");
    for (const char* procs : {"cgroup.procs", "task/cgroup.procs", "task/pids.max"}) {
      EXPECT_TRUE(base::write_new_file(folder_ / name / procs, ""));
    }
    return TaskGroup{.folder = (folder_ / name / "task").string(),
                     .home = (folder_ / name).string(),
                     .settings = {{file, "7"}}};
  };
  ShimPlan plan = script("true");
  plan.inner.limits.groups = {group("pids", "pids.max"), group("cpuset", "cpuset.cpus")};

  const auto records = start(plan).until(FollowKind::kExit);

  const std::string log = output_in(bytes_of(records, FollowKind::kLog), job::LogStream::kNotice);
  EXPECT_NE(log.find("no control group binds this task to its CPUs: "), std::string::npos) << log;
  EXPECT_EQ(log.find("Muster measures it"), std::string::npos) << log;
  EXPECT_EQ(*base::read_file(folder_ / "pids/task/cgroup.procs"), "0");
  EXPECT_EQ(*base::read_file(folder_ / "cpuset/task/cgroup.procs"), "");
}

TEST_F(ShimInContainer, ATaskWhoseFoldersAreNestedTooDeepIsKilledForThat) {
  const std::filesystem::path scratch = folder_ / "scratch";
  std::filesystem::path deepest = scratch;
  for (int depth = 0; depth < 257; ++depth) deepest /= "d";
  std::filesystem::create_directories(deepest);
  ShimPlan plan = script("sleep 1000");
  plan.inner.limits.scratch_bytes = 1 << 30;
  plan.inner.limits.scratch = {scratch.string()};

  const auto records = start(plan).until(FollowKind::kExit);

  const std::string log = output_in(bytes_of(records, FollowKind::kLog), job::LogStream::kNotice);
  EXPECT_NE(log.find("folders in $TMPDIR are nested more than 256 deep"), std::string::npos) << log;
  EXPECT_EQ(end_in(records).limit, (job::LimitReached{job::Limit::kScratch, 1 << 30, 0}));
}

TEST_F(ShimInContainer, AKillEndsAllProcesses) {
  FollowStream stream = start(script("trap '' TERM HUP; echo up; sleep 1000 & wait"));
  stream.until(FollowKind::kLog);

  signal(SIGQUIT);

  EXPECT_EQ(end_in(stream.until(FollowKind::kExit)),
            (job::ExitStatus{.signal = 9, .stopped = true}));
}

TEST_F(ShimInContainer, AKillKeepsTheOutputOfAnEndedRank) {
  for (const char* name : {"gate", "ended"}) {
    ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  }
  ShimPlan plan = script("echo up; read -r _ < $SCRATCH/gate; " + std::string(MUSTER_SHIM) +
                         " --rank sh -c 'echo last words'; echo > $SCRATCH/ended; sleep 1000");
  plan.inner.rank_output_folder = generated().string();
  plan.inner.environment.insert(plan.inner.environment.end(),
                                {"MUSTER_RANK=0", "MUSTER_GENERATED=" + generated().string()});
  FollowStream stream = start(plan);
  stream.until(FollowKind::kLog);

  // The stopped shim reads the rank's output only after the kill has arrived.
  signal(SIGSTOP);
  std::ofstream(folder_ / "gate") << std::endl;
  ASSERT_TRUE(base::read_file(folder_ / "ended"));
  signal(SIGQUIT);
  signal(SIGCONT);

  const auto records = stream.until(FollowKind::kExit);
  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog)), "last words\n");
}

TEST_F(ShimInContainer, AStopAtTheEndLosesNoRecord) {
  ShimPlan plan = script("exit 5");
  for (int i = 0; i < 300; ++i) plan.inner.environment.push_back("X" + std::to_string(i) + "=y");
  FollowStream stream = start(plan);
  stream.until(FollowKind::kRunning);

  signal(SIGTERM);  // before the end, or after it
  signal(SIGTERM);

  EXPECT_EQ(kinds_of(stream.rest()).back(), 'e');
}

TEST_F(ShimInContainer, WaitsForItsFiles) {
  FollowStream stream = spawn({MUSTER_SHIM, "--container", task().path.string()});
  while (!blocks_stops(child().pid)) ::sched_yield();

  ASSERT_TRUE(base::write_new_file(task().plan(), encode(script("echo out"))));
  ASSERT_TRUE(base::write_new_file(task().complete(), ""));

  EXPECT_EQ(kinds_of(stream.until(FollowKind::kExit)), "rle");
}

TEST_F(ShimInContainer, AStopEndsTheWaitForFiles) {
  FollowStream stream = spawn({MUSTER_SHIM, "--container", task().path.string()});
  while (!blocks_stops(child().pid)) ::sched_yield();

  signal(SIGTERM);

  EXPECT_EQ(kinds_of(stream.rest()), "x");
  EXPECT_EQ(await_end(), 0);
}

TEST_F(ShimInContainer, OutlivesATaskThatCannotStart) {
  ShimPlan plan = script("exit 0");
  plan.wrapper = {"/nowhere/muster-shim", "--inner"};
  FollowStream stream = start(plan);

  const auto records = stream.rest();

  ASSERT_EQ(kinds_of(records), "x");
  EXPECT_NE(read_refusal(records.front().bytes).what.find("/nowhere/muster-shim"),
            std::string::npos);
  signal(SIGQUIT);
  EXPECT_EQ(await_end(), 0);
}

TEST_F(ShimInContainer, RefusesATaskThatItCannotRecord) {
  ASSERT_TRUE(base::make_private_folder(task().running()));  // no file can take its place

  const auto records = start(script("exec sleep 1000")).until(FollowKind::kRefused);

  EXPECT_EQ(kinds_of(records), "x");
  EXPECT_NE(read_refusal(records.back().bytes).what.find("cannot record that the task runs"),
            std::string::npos);
}

TEST_F(ShimInContainer, AStopEndsTheWaitForAnotherProgramThatHoldsTheOutput) {
  ASSERT_EQ(::mkfifo((folder_ / "gate").c_str(), 0600), 0);
  FollowStream stream = start(script("echo $$; read -r _ < $SCRATCH/gate; echo last words"));
  const std::string pid = output_in(bytes_of(stream.until(FollowKind::kLog), FollowKind::kLog));
  const auto program = base::open_pidfd(std::stoi(pid));
  ASSERT_TRUE(program);
  const base::UniqueFd held(
      ::open(("/proc/" + std::to_string(std::stoi(pid)) + "/fd/1").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(held);
  std::ofstream(folder_ / "gate") << std::endl;
  ASSERT_TRUE(is_readable(*program));

  signal(SIGTERM);

  const auto records = stream.until(FollowKind::kExit);
  EXPECT_EQ(end_in(records), job::ExitStatus{.stopped = true});
  const std::string log = bytes_of(records, FollowKind::kLog);
  EXPECT_EQ(output_in(log), "last words\n");
  EXPECT_EQ(output_in(log, job::LogStream::kNotice),
            "another program still holds the task's output; it is read no longer\n");
}

TEST_F(ShimInContainer, ASilentConnectionToTheSocketOfRanksDelaysNothing) {
  ASSERT_EQ(::mkfifo((folder_ / "gate").c_str(), 0600), 0);
  ShimPlan plan = script("echo up; read -r _ < $SCRATCH/gate; exec " + std::string(MUSTER_SHIM) +
                         " --rank sh -c 'echo from a rank'");
  plan.inner.rank_output_folder = generated().string();
  plan.inner.environment.insert(plan.inner.environment.end(),
                                {"MUSTER_RANK=0", "MUSTER_GENERATED=" + generated().string()});
  FollowStream stream = start(plan);
  stream.until(FollowKind::kLog);
  const auto silent = connect_in(generated().string(), "output");
  ASSERT_TRUE(silent) << silent.error().what;

  std::ofstream(folder_ / "gate") << std::endl;

  const auto records = stream.until(FollowKind::kExit);
  EXPECT_EQ(end_in(records), job::ExitStatus{});
  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog)), "from a rank\n");
}

TEST_F(ShimInContainer, APortInUseIsAConflict) {
  const auto taken = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(taken);
  sockaddr_in where{};
  socklen_t size = sizeof where;
  ASSERT_EQ(::getsockname(taken->get(), reinterpret_cast<sockaddr*>(&where), &size), 0);
  ShimPlan plan = script("exit 0");
  plan.address = "127.0.0.1";
  plan.port = ntohs(where.sin_port);

  const auto records = start(plan).rest();

  ASSERT_EQ(kinds_of(records), "x");
  EXPECT_EQ(read_refusal(records.front().bytes).code, base::ErrorCode::kConflict);
}

/// An address that only this test uses.
std::string own_address() {
  const int pid = ::getpid();
  return "127.91." + std::to_string(pid >> 8 & 255) + "." + std::to_string(pid & 255);
}

TEST_F(ShimInContainer, ReportsTheGreetingOfItsPort) {
  ShimPlan plan = script("exec sleep 1000");
  plan.address = own_address();
  plan.port = 2222;
  plan.inner.ssh_command = {"/bin/sh", "-c", "echo MUSTER-RSH 1"};

  EXPECT_EQ(kinds_of(start(plan).until(FollowKind::kAnswered)), "ra");
}

TEST_F(ShimInContainer, AConnectionWithoutAGreetingIsNoAnswer) {
  ShimPlan plan = script("exec sleep 1000");
  plan.address = "0.0.0.0";
  plan.port = 20'000 + ::getpid() % 10'000;  // below the range of ephemeral ports
  const std::string tried = (folder_ / "tried").string();
  plan.inner.ssh_command = {"/bin/sh", "-c",
                            "[ -e " + tried + " ] && exec echo SSH-2.0-x; touch " + tried};

  FollowStream stream = start(plan);

  EXPECT_EQ(kinds_of(stream.until(FollowKind::kAnswered)), "ra");
  EXPECT_TRUE(std::filesystem::exists(tried));
}

TEST_F(ShimInContainer, ReportsRanksThatSignIn) {
  ShimPlan plan = script("echo 4 > generated/ranks/2; echo 4 > generated/ranks/0; exec sleep 1000");
  plan.inner.takes_ranks = true;
  FollowStream stream = start(plan);
  stream.until(FollowKind::kRank);
  stream.until(FollowKind::kRank);

  FollowStream again = follow();
  std::vector<std::string> ranks{again.until(FollowKind::kRank).back().bytes,
                                 again.until(FollowKind::kRank).back().bytes};
  std::sort(ranks.begin(), ranks.end());
  EXPECT_EQ(ranks, (std::vector<std::string>{"0 4", "2 4"}));
}

TEST_F(ShimInContainer, AReaderThatNeverReadsDelaysNothing) {
  FollowStream unread = start(script("head -c 5000000 /dev/zero; echo done"));
  while (!std::filesystem::exists(task().log())) ::sched_yield();

  FollowStream read = follow();

  const std::string log = bytes_of(read.until(FollowKind::kExit), FollowKind::kLog);
  EXPECT_EQ(output_in(log).size(), 5'000'005U);
}

TEST_F(ShimInContainer, AFollowerWithoutAReaderEnds) {
  FollowStream stream = start(script("echo up; exec sleep 1000"));
  stream.until(FollowKind::kLog);
  {
    FollowStream dropped = follow();
    dropped.until(FollowKind::kLog);
  }
  EXPECT_EQ(await_end(1), 1);
}

TEST_F(ShimInContainer, AFollowerContinuesAtTheGivenOffsets) {
  FollowStream stream = start(script("echo one; echo two >&2; echo three"));
  const std::string log = bytes_of(stream.until(FollowKind::kExit), FollowKind::kLog);
  for (const size_t from : {size_t{0}, size_t{1}, kFrameHeader + 4, log.size() - 1, log.size()}) {
    FollowStream again = follow(from);
    const auto records = again.rest();
    EXPECT_EQ(bytes_of(records, FollowKind::kLog), log.substr(from)) << from;
    if (from < log.size()) {
      EXPECT_EQ(records[1].offset, from);
    }
  }
}

/// A command that runs a shim as process 1 of a process tree of its own. `root`: its root folder.
std::vector<std::string> process_tree(std::vector<std::string> root, bool read_only = false) {
  root.insert(root.begin(), "bwrap");
  root.insert(root.end(), {"--proc", "/proc", "--dev", "/dev"});
  if (read_only) root.insert(root.end(), {"--remount-ro", "/"});
  root.insert(root.end(), {"--unshare-pid", "--as-pid-1", "--die-with-parent", "--"});
  return root;
}

TEST_F(ShimInContainer, ReapsOrphansOfOtherPrograms) {
  // Another program enters, as the exec of a container does, and leaves a child behind.
  ASSERT_EQ(::mkfifo((folder_ / "stranger").c_str(), 0600), 0);
  FollowStream stream = start(script("read stranger < stranger\n"
                                     "while [ -d /proc/$stranger ]; do sleep 0.01; done"),
                              process_tree({"--dev-bind", "/", "/"}));
  stream.until(FollowKind::kRunning);
  const pid_t process_one = descendants_of(child().pid).front();
  std::vector<std::string> enter{"nsenter", "--target", std::to_string(process_one), "--pid",
                                 "--mount"};
  if (::geteuid() != 0) enter.insert(enter.end(), {"--user", "--preserve-credentials"});
  enter.insert(enter.end(), {"sh", "-c",
                             "sh -c 'echo $$ > " + (folder_ / "stranger").string() +
                                 "; exec cat' < /dev/null > /dev/null &"});
  spawn(enter);
  EXPECT_EQ(await_end(1), 0);

  EXPECT_EQ(end_in(stream.until(FollowKind::kExit)), job::ExitStatus{});
}

#ifdef MUSTER_STATIC_SHIM
TEST_F(ShimInContainer, RunsInAnEmptyImage) {
  ShimPlan plan{.wrapper = {"/shim", "--inner"},
                .inner = {.argv = {"/shim", "--what?"}, .environment = {}, .folder = "/"},
                .generated = "/generated"};
  const std::string task_folder = task().path.string();
  FollowStream stream =
      start(plan,
            process_tree({"--ro-bind", MUSTER_SHIM, "/shim", "--bind", task_folder, task_folder,
                          "--bind", generated().string(), "/generated"},
                         true),
            "/shim");

  const auto records = stream.until(FollowKind::kExit);

  EXPECT_EQ(end_in(records), job::ExitStatus{.code = 2});
  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog), job::LogStream::kError),
            "muster-shim is started by muster; see muster --help\n");
}
#endif

TEST_F(ShimInContainer, RunsAsAnyAccount) {
  if (::geteuid() != 0) return;  // the other tests already run under an ordinary account
  constexpr uid_t kNobody = 65'534;
  const std::string shim = (folder_ / "shim").string();
  std::filesystem::copy_file(MUSTER_SHIM, shim);
  ShimPlan plan = script("id -u; echo 2 > generated/ranks/1");
  plan.wrapper.front() = shim;
  plan.inner.takes_ranks = true;
  const std::string id = std::to_string(kNobody);
  ASSERT_TRUE(base::write_new_file(task().plan(), encode(plan)));
  ASSERT_TRUE(base::write_new_file(task().complete(), ""));
  for (const auto& path :
       {folder_.path(), task().path, task().plan(), generated(), generated() / "ranks"}) {
    ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
  }
  FollowStream stream = spawn({"setpriv", "--reuid", id, "--regid", id, "--clear-groups", shim,
                               "--container", task().path.string()});

  const auto records = stream.until(FollowKind::kExit);

  EXPECT_EQ(output_in(bytes_of(records, FollowKind::kLog)), id + "\n");
  EXPECT_EQ(bytes_of(records, FollowKind::kRank), "1 2");
  EXPECT_EQ(end_in(records), job::ExitStatus{});
}

}  // namespace
}  // namespace muster::engine
