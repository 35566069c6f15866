// A muster-node whose server is away, was replaced by another, or never existed; and signals of
// Slurm.
#include "engine/folder/file_watch.h"
#include "engine/node/test_server.h"
#include "engine/shim/process_tree.h"

namespace muster::engine::node {
namespace {

class NodeReconnect : public TestServer {
 protected:
  /// A task that prints numbered lines until the file exists.
  StartOrder counting_order() const {
    StartOrder asked = order(
        "i=0; while [ ! -e /generated/end ]; do i=$((i+1)); echo line $i; "
        "[ $((i % 50)) -ne 0 ] || sleep 0.02; done; echo last $i");
    asked.plan.files = {{.path = "begin", .content = ""}};
    return asked;
  }
  void end_counting() {
    line_->send(
        ChangeOrder{1, {.task = "main", .files = {{.path = "end", .content = ""}}, .hosts = {}}});
  }
  /// Expects line 1, line 2 and so on, without a gap.
  void expect_each_line_once(const std::string& text) const {
    std::string expected;
    const int last = std::stoi(text.substr(text.rfind(' ') + 1));
    for (int i = 1; i <= last; ++i) expected += "line " + std::to_string(i) + "\n";
    expected += "last " + std::to_string(last) + "\n";
    EXPECT_TRUE(text == expected) << "lines are missing or repeated";
  }
  /// Removes the server's copy of the log, as a server does after a failed start.
  void forget_log() {
    mirror_.reset();
    EXPECT_TRUE(base::remove_tree(folder_ / "jobs"));
  }
  /// Waits for a file on the node while there is no server.
  void wait_for_exit_record() {
    FileWatch files(loop_.loop());
    const auto watch = files.watch(task_on_node().path, [this] { loop_.look(); });
    wait_until([&] {
      const auto text = base::read_file(task_on_node().exit());
      return text && decode_exit(*text);
    });
  }
  /// Sends a signal to all processes of the task, as Slurm does to a step.
  void signal_all(int number) {
    for (const pid_t pid : descendants_of(node_->pid())) ::kill(pid, number);
    node_->signal(number);
  }
};

TEST_F(NodeReconnect, NoByteIsLostOrSentTwiceWhileTheServerIsAway) {
  open();
  run_node();
  start_well(counting_order());
  const int first_calls = calls_;
  for (int i = 0; i < 3; ++i) {
    const std::string before = log();
    wait_until([&] { return log().size() > before.size() + 1000; });
    const uint16_t port = port_;
    close();
    open(port);
    wait_for_line();
    EXPECT_TRUE(line_->hello().holds_task);
  }
  EXPECT_EQ(calls_, first_calls + 3);
  end_counting();
  wait_for<EndedNews>();

  expect_each_line_once(log());
  send_farewell();
}

TEST_F(NodeReconnect, AnEndWhileTheServerIsAwayIsReportedLater) {
  open();
  run_node();
  start_well(
      order("echo up; while [ ! -e /generated/go ]; do sleep 0.02; done; echo down; exit 6"));
  wait_for_log("up");
  const uint16_t port = port_;
  news_.clear();
  close();
  ASSERT_TRUE(base::write_new_file(task_on_node().generated() / "go", ""));
  wait_for_exit_record();
  open(port);

  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 6);

  EXPECT_EQ(log(), "up\ndown\n");
  EXPECT_EQ(end_left_in(mirror_->folder()).status.code, 6);
  send_farewell(6);
}

TEST_F(NodeReconnect, ATaskThatIsStartedAgainIsReportedFromItsBeginning) {
  open();
  run_node();
  start_well(order("echo the first; while [ ! -e /generated/end ]; do sleep 0.02; done"));
  wait_for_log("the first");
  const uint16_t port = port_;
  close();
  open(port);
  wait_for_line();  // records follow from behind "the first"
  end_counting();
  wait_for<EndedNews>();
  news_.clear();
  forget_log();

  StartOrder again = order("echo again");
  again.start = 2;
  start_well(again);
  wait_for<EndedNews>();

  EXPECT_EQ(log(), "again\n");
  send_farewell();
}

TEST_F(NodeReconnect, NothingIsReportedOfATaskThatTheServerHasForgotten) {
  open();
  run_node();
  start_well(order("echo the first"));
  wait_for<EndedNews>();
  const uint16_t port = port_;
  news_.clear();
  close();
  forget_log();
  start_number_ = 2;
  open(port);
  wait_for_line();
  EXPECT_EQ(line_->hello().start, 1U);

  StartOrder again = order("echo again; exit 4");
  again.start = 2;
  start_well(again);

  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 4) << "the end of the task that is forgotten";
  EXPECT_EQ(log(), "again\n");
  send_farewell(4);
}

TEST_F(NodeReconnect, AServerThatMovedIsFoundInTheSharedFolder) {
  open();
  NodeBrief shared = brief();
  shared.sharing = Sharing::kYes;
  ASSERT_TRUE(base::make_private_folder(shared.folder));
  ASSERT_TRUE(base::write_file(std::filesystem::path(shared.folder) / shared.mark, "5eed\n"));
  run_node(shared);
  StartOrder asked = order("echo up; while [ ! -e /generated/end ]; do sleep 0.02; done; exit 3");
  asked.folder = shared.folder;
  asked.is_shared = true;
  start_well(asked);
  wait_for_log("up");
  const uint16_t old = port_;
  auto former = std::move(hub_);
  open();
  ASSERT_NE(port_, old);
  ASSERT_TRUE(base::write_file(
      std::filesystem::path(shared.folder) / kCallbackFile,
      encode(CallbackAddress{.hosts = {"localhost", "127.0.0.1"}, .port = port_})));
  former.reset();
  line_.reset();

  wait_for_line();

  EXPECT_TRUE(line_->hello().holds_task);
  end_counting();
  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 3);
  send_farewell();
}

TEST_F(NodeReconnect, AServerWithAnotherKeyIsRejected) {
  open();
  NodeBrief stranger = brief();
  stranger.key.fill(8);
  stranger.linger = std::chrono::milliseconds(300);
  run_node(stranger);
  wait_for_exit();

  EXPECT_EQ(node_->code(), 1);
  EXPECT_EQ(calls_, 0);
  EXPECT_NE(node_->complaints().find("cannot reach Muster's server from node n1"),
            std::string::npos)
      << node_->complaints();
  EXPECT_NE(node_->complaints().find("rejects the connection"), std::string::npos)
      << node_->complaints();
}

TEST_F(NodeReconnect, TheErrorListsTheAddressesThatWereTried) {
  open();
  NodeBrief lost = brief();
  close();
  lost.hosts = {"no-such-host.invalid", "127.0.0.1"};
  lost.linger = std::chrono::milliseconds(300);
  run_node(lost, {{"RES_OPTIONS", "attempts:1 timeout:1"}});  // a name server may not answer
  wait_for_exit();

  EXPECT_EQ(node_->code(), 1);
  const std::string printed = node_->complaints();
  EXPECT_NE(printed.find("at port " + std::to_string(lost.port) + " of no-such-host.invalid ("),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find("127.0.0.1 (Connection refused)"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("0707070707"), std::string::npos) << "the key is shown";
}

TEST_F(NodeReconnect, WaitsForTheServerAfterTheEndAsLongAsConfigured) {
  open();
  NodeBrief short_linger = brief();
  short_linger.linger = std::chrono::milliseconds(300);
  run_node(short_linger);
  start_well(order("echo some words; exit 5"));
  wait_for<EndedNews>();
  close();
  wait_for_exit();

  EXPECT_EQ(node_->code(), 5);
  EXPECT_NE(node_->complaints().find("are left in " + task_on_node().path.string()),
            std::string::npos)
      << node_->complaints();
  EXPECT_TRUE(std::filesystem::exists(task_on_node().log()));
}

TEST_F(NodeReconnect, SlurmsSignalLeavesTheTaskItsGracePeriod) {
  open();
  run_node();
  start_well(
      order("trap 'sleep 0.3; echo saved; exit 8' TERM; echo up; while :; do sleep 0.05; done"));
  wait_for_log("up");

  signal_all(SIGTERM);

  EXPECT_EQ(wait_for<SignalledNews>().signal, SIGTERM);
  const TaskEnded end = wait_for<EndedNews>().end;
  EXPECT_EQ(end.status.code, 8);
  EXPECT_TRUE(end.status.stopped);
  EXPECT_NE(log().find("saved"), std::string::npos) << log();
  send_farewell();
}

TEST_F(NodeReconnect, ASignalIsReportedBeforeTheEndThatItCaused) {
  open();
  run_node();
  start_well(order("echo up; while [ ! -e /generated/end ]; do sleep 0.02; done"));
  wait_for_log("up");
  // Slurm signals each process of the step, and the task may react before muster-node.
  node_->signal(SIGSTOP);
  ASSERT_TRUE(base::write_new_file(task_on_node().generated() / "end", ""));
  wait_for_exit_record();
  node_->signal(SIGTERM);
  node_->signal(SIGCONT);

  wait_for<EndedNews>();

  EXPECT_NE(find<SignalledNews>(), nullptr) << "the end came first";
  send_farewell();
}

TEST_F(NodeReconnect, SignalsForTheProgramAreIgnored) {
  open();
  run_node();
  start_well(order(
      "trap 'echo signalled' USR1; echo up; while [ ! -e /generated/end ]; do sleep 0.02; done; "
      "exit 3"));
  wait_for_log("up");

  signal_all(SIGUSR1);

  wait_for_log("signalled");
  end_counting();
  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 3);
  send_farewell();
}

TEST_F(NodeReconnect, WithoutATaskItExitsOnSlurmsSignal) {
  open();
  run_node();
  wait_for_line();

  node_->signal(SIGTERM);

  EXPECT_EQ(wait_for<SignalledNews>().signal, SIGTERM);
  wait_for_exit();
  EXPECT_EQ(node_->code(), 128 + SIGTERM);
}

TEST_F(NodeReconnect, NoTaskOutlivesItsMusterNode) {
  for (const auto sandbox : {job::Sandbox::kBubblewrap, job::Sandbox::kNone}) {
    open();
    run_node();
    StartOrder asked = order("trap '' TERM HUP; echo up; while :; do sleep 0.05; done");
    asked.plan.sandbox = sandbox;
    start_well(asked);
    wait_for_log("up");
    std::vector<base::UniqueFd> processes;
    for (const pid_t pid : descendants_of(node_->pid())) {
      auto pidfd = base::open_pidfd(pid);
      if (pidfd) processes.push_back(*std::move(pidfd));
    }
    ASSERT_GE(processes.size(), 3u);

    node_->signal(SIGKILL);

    for (const base::UniqueFd& process : processes) {
      bool ended = false;
      const auto end = loop_.loop().when_readable(process.get(), [&] {
        ended = true;
        loop_.look();
      });
      wait_until([&] { return ended; });
    }
    EXPECT_EQ(node_->code(), 128 + SIGKILL);
    EXPECT_EQ(end_left_in(task_on_node()).status.error, "the muster-node that held it was killed");
    node_.reset();
    close();
    news_.clear();
    mirror_.reset();
    ASSERT_TRUE(base::remove_tree(folder_ / "jobs"));
    ASSERT_TRUE(base::remove_tree(node_folder()));
  }
}

TEST_F(NodeReconnect, AFarewellEndsARunningTask) {
  open();
  run_node();
  start_well(order("trap '' TERM; echo up; while :; do sleep 0.05; done"));
  wait_for_log("up");

  send_farewell(0);

  EXPECT_FALSE(std::filesystem::exists(node_folder()));
}

TEST_F(NodeReconnect, OutsideAStepOfSlurmItFails) {
  open();
  run_node({{"SLURM_PROCID", ""}});
  wait_for_exit();

  EXPECT_EQ(node_->code(), 1);
  EXPECT_NE(node_->complaints().find("muster-node was not started by srun"), std::string::npos);
}

}  // namespace
}  // namespace muster::engine::node
