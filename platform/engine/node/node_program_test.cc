// muster-node as a process, with the server in the test: starting, following, ending.
#include <sys/file.h>
#include <sys/resource.h>

#include "engine/node/attempt_folder.h"
#include "engine/node/task_reports.h"
#include "engine/node/test_server.h"

namespace muster::engine::node {
namespace {

using NodeProgram = TestServer;

TEST_F(NodeProgram, SendsTheNameOfItsTask) {
  open();
  run_node({{"SLURM_PROCID", "3"},
            {"SLURM_RESTART_COUNT", "2"},
            {"CUDA_VISIBLE_DEVICES", "0,1"},
            {"SLURM_STEP_GPUS", "4,6"}});
  wait_for_line();

  const Hello& hello = line_->hello();
  EXPECT_EQ(hello.facts.component, 0);
  EXPECT_EQ(hello.facts.index, 3);
  EXPECT_EQ(hello.facts.allocation, 17u);
  EXPECT_EQ(hello.facts.restarts, 2);
  EXPECT_EQ(hello.facts.node, "n1");
  EXPECT_EQ(hello.address, "127.0.0.1");
  EXPECT_EQ(hello.facts.gpus, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(hello.facts.gpu_indices, (std::vector<int>{4, 6}));
  EXPECT_FALSE(hello.shares_folder);
  EXPECT_FALSE(hello.holds_task);
  EXPECT_NE(hello.version, "");
  send_farewell(5);
}

TEST_F(NodeProgram, ATasksRecordsArriveBeforeItsEnd) {
  open();
  run_node();
  start_well(order("echo out; echo err >&2; hostname; exit 7"));

  const TaskEnded end = wait_for<EndedNews>().end;

  EXPECT_EQ(end.status, (job::ExitStatus{.code = 7}));
  EXPECT_NE(find<AnsweredNews>(), nullptr);
  EXPECT_NE(log().find("out\n"), std::string::npos);
  EXPECT_NE(log().find("err\n"), std::string::npos);
  EXPECT_NE(log().find("job-main\n"), std::string::npos);
  EXPECT_EQ(end_left_in(mirror_->folder()).status, end.status);
  send_farewell(7);
  wait_for<LeftNews>();
  EXPECT_FALSE(std::filesystem::exists(node_folder())) << "files remain on the node";
}

TEST_F(NodeProgram, ATaskGetsSlurmsGpusButNotSlurmsVariables) {
  open();
  run_node({{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_STEP_GPUS", "4,6"}, {"PMIX_RANK", "0"}});
  StartOrder asked = order("env; exit 0");
  asked.plan.devices = {6};
  asked.plan.environment["CUDA_VISIBLE_DEVICES"] = "6";
  start_well(asked);
  wait_for<EndedNews>();

  EXPECT_NE(log().find("CUDA_VISIBLE_DEVICES=1\n"), std::string::npos) << log();
  EXPECT_EQ(log().find("SLURM"), std::string::npos) << log();
  EXPECT_EQ(log().find("PMIX"), std::string::npos) << log();
  send_farewell();
}

TEST_F(NodeProgram, AFailedStartIsAnswered) {
  open();
  run_node();
  StartOrder asked = order("true");
  asked.programs = "/nowhere";
  start(asked);

  const auto& answer = wait_for<StartAnswer>();

  ASSERT_TRUE(answer.error);
  EXPECT_NE(answer.error->what.find("/nowhere/muster-shim"), std::string::npos)
      << answer.error->to_string();
  news_.clear();
  start_well(order("exit 3"));
  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 3);
  send_farewell();
}

TEST_F(NodeProgram, RemovesTheFolderOfAKilledMusterNode) {
  const auto left = node_folder() / "job-0" / "1";
  const auto in_use = node_folder() / "job-00" / "3";
  for (const auto& attempt : {left, in_use}) {
    ASSERT_TRUE(base::make_private_folder(attempt / "main"));
    ASSERT_TRUE(base::write_file(attempt / "main" / "id_rsa", "a key"));
    ASSERT_TRUE(base::write_file(attempt.parent_path() / kJobMark, ""));
  }
  const base::UniqueFd held(::open(in_use.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_SH), 0);
  open();
  run_node();
  start_well(order("exit 0"));

  EXPECT_FALSE(std::filesystem::exists(left.parent_path()));
  EXPECT_TRUE(std::filesystem::exists(in_use / "main" / "id_rsa"))
      << "another process uses the folder";
  EXPECT_TRUE(std::filesystem::exists(task_on_node().path));
  wait_for<EndedNews>();
  send_farewell();
}

TEST(ReportsOfATask, ItsRecordsAreSentOnceThisMachineHasDescriptorsAgain) {
  const base::TestFolder folder;
  base::TestLoop loop;
  const TaskFolder task{folder / "main"};
  ASSERT_TRUE(base::make_private_folder(task.path));
  ASSERT_TRUE(base::write_file(task.log(), ""));
  ASSERT_TRUE(
      base::write_file(task.exit(), encode(ExitRecord{.status = {.code = 3}, .ended = {}})));
  bool is_sent = false;
  TaskReports reports(loop.loop(), task, false, [&](const NodeNews& news) {
    const auto* const record = std::get_if<RecordNews>(&news);
    is_sent = is_sent || (record != nullptr && record->record.kind == FollowKind::kExit);
    loop.look();
  });
  reports.report_again(Welcome{});
  // The first timer of a loop opens descriptors; the loop of a muster-node has had one.
  const auto first = loop.loop().after(std::chrono::hours(1), [] {});
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);

  reports.started(std::nullopt);

  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_TRUE(loop.run_until([&] { return is_sent; }));
}

TEST(ForsakenAttempts, FoldersOfOthersAndLinksStay) {
  const base::TestFolder folder;
  const auto jobs = folder / "jobs";
  for (const char* const path : {"jobs/photos", "jobs/sets/0", "elsewhere/1", "trees/1"}) {
    ASSERT_TRUE(base::make_private_folder(folder / path));
  }
  std::filesystem::create_directory_symlink(folder / "elsewhere", jobs / "l");
  for (const char* const path :
       {"jobs/photos/a", "jobs/sets/0/x", "elsewhere/.muster-job", "elsewhere/1/y", "trees/1/z"}) {
    ASSERT_TRUE(base::write_file(folder / path, "mine"));
  }
  ASSERT_TRUE(make_attempt_folder(jobs, {.job_id = "job-1", .attempt = 2}));
  ASSERT_TRUE(base::write_file(jobs / "job-1" / "2" / "id_rsa", "a key"));
  ASSERT_TRUE(make_attempt_folder(jobs, {.job_id = "job-2", .attempt = 2}));
  std::filesystem::create_directory_symlink(folder / "trees" / "1", jobs / "job-2" / "1");

  remove_forsaken_attempts(jobs);

  for (const char* const path :
       {"jobs/photos/a", "jobs/sets/0/x", "jobs/l", "elsewhere/1/y", "trees/1/z"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / path)) << path;
  }
  EXPECT_FALSE(std::filesystem::exists(jobs / "job-1"));
  EXPECT_FALSE(std::filesystem::exists(jobs / "job-2" / "2"));
}

TEST(AttemptFolders, AnEarlierFolderOfAnotherIsUsedButNotRemoved) {
  const base::TestFolder folder;
  const GangId gang{.job_id = "job-1", .attempt = 2};
  ASSERT_TRUE(base::make_private_folder(folder / "jobs/job-1"));
  ASSERT_TRUE(base::write_file(folder / "jobs/job-1/notes", "mine"));

  const auto held = make_attempt_folder(folder / "jobs", gang);
  ASSERT_TRUE(held) << held.error().to_string();
  ASSERT_TRUE(base::make_private_folder(folder / "jobs/job-1/2/main"));
  remove_task_folder(folder / "jobs", gang, "main");

  EXPECT_FALSE(std::filesystem::exists(folder / "jobs/job-1/2"));
  EXPECT_TRUE(std::filesystem::exists(folder / "jobs/job-1/notes"));
}

TEST(AttemptFolders, ALinkInPlaceOfTheFolderIsRefused) {
  const base::TestFolder folder;
  ASSERT_TRUE(base::make_private_folder(folder / "elsewhere"));
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "jobs");

  const auto held = make_attempt_folder(folder / "jobs", {.job_id = "job-1", .attempt = 2});

  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, base::ErrorCode::kRefused) << held.error().to_string();
}

TEST_F(NodeProgram, AFolderThatCannotBeMadeIsAnError) {
  open();
  run_node();
  ASSERT_TRUE(base::write_file(folder_ / "file", "no folder"));
  StartOrder asked = order("true");
  asked.folder = (folder_ / "file" / "node").string();
  start(asked);

  const auto& answer = wait_for<StartAnswer>();

  ASSERT_TRUE(answer.error);
  EXPECT_NE(answer.error->what.find(asked.folder), std::string::npos) << answer.error->to_string();
  send_farewell();
}

TEST_F(NodeProgram, AStopLeavesTheGracePeriod) {
  open();
  run_node();
  start_well(
      order("trap 'echo asked to stop; exit 9' TERM; echo up; while :; do sleep 0.05; done"));
  wait_for_log("up");

  line_->send(StopOrder{StopMode::kGraceful});

  const TaskEnded end = wait_for<EndedNews>().end;
  EXPECT_EQ(end.status.code, 9);
  EXPECT_TRUE(end.status.stopped);
  EXPECT_NE(log().find("asked to stop"), std::string::npos);
  send_farewell();
}

TEST_F(NodeProgram, AKillEndsTheTaskAtOnce) {
  open();
  run_node();
  start_well(order("trap '' TERM; echo up; while :; do sleep 0.05; done"));
  wait_for_log("up");

  line_->send(StopOrder{StopMode::kNow});

  EXPECT_EQ(wait_for<EndedNews>().end.status.signal, SIGKILL);
  send_farewell();
}

TEST_F(NodeProgram, ATaskCanStartAgainAfterAFailedStart) {
  open();
  run_node();
  start_well(order("echo first; exit 1"));
  wait_for<EndedNews>();
  news_.clear();
  mirror_.reset();
  ASSERT_TRUE(base::remove_tree(folder_ / "jobs"));

  start_well(order("echo second; exit 2"));

  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 2);
  send_farewell();
}

TEST_F(NodeProgram, ChangesFilesOfARunningTask) {
  open();
  run_node();
  StartOrder asked =
      order("echo up; while ! grep -q new /generated/hostfile; do sleep 0.05; done; echo changed");
  asked.plan.files = {{.path = "hostfile", .content = "old"}};
  start_well(asked);
  wait_for_log("up");

  line_->send(ChangeOrder{
      4, {.task = "main", .files = {{.path = "hostfile", .content = "new"}}, .hosts = {}}});

  const auto& answer = wait_for<ChangeAnswer>();
  EXPECT_EQ(answer.number, 4u);
  EXPECT_FALSE(answer.error) << answer.error->to_string();
  wait_for_log("changed");
  send_farewell();
}

TEST_F(NodeProgram, AServerWithASharedFolderGetsHintsOfGrowth) {
  open();
  NodeBrief shared = brief();
  shared.sharing = Sharing::kAuto;
  ASSERT_TRUE(base::make_private_folder(shared.folder));
  ASSERT_TRUE(base::write_file(std::filesystem::path(shared.folder) / shared.mark, "5eed\n"));
  run_node(shared);
  wait_for_line();
  EXPECT_TRUE(line_->hello().shares_folder);
  StartOrder asked = order("echo one; sleep 0.3; echo two; exit 4");
  asked.folder = shared.folder;
  asked.is_shared = true;
  start_well(asked);

  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 4);

  EXPECT_EQ(log(), "one\ntwo\n");
  EXPECT_EQ(find<RecordNews>(), nullptr);
  EXPECT_TRUE(find<GrownNews>() != nullptr && find<GrownNews>()->log);
  send_farewell();
  EXPECT_EQ(log(), "one\ntwo\n") << "only the server removes a shared folder";
}

TEST_F(NodeProgram, AnotherMarkIsAnotherFolder) {
  open();
  NodeBrief other = brief();
  other.sharing = Sharing::kAuto;
  ASSERT_TRUE(base::make_private_folder(other.folder));
  ASSERT_TRUE(base::write_file(std::filesystem::path(other.folder) / other.mark, "other\n"));
  run_node(other);
  wait_for_line();

  EXPECT_FALSE(line_->hello().shares_folder);

  send_farewell();
  other.sharing = Sharing::kYes;
  run_node(other);
  wait_for_exit();
  EXPECT_EQ(node_->code(), 1);
  EXPECT_NE(node_->complaints().find("belongs to another server"), std::string::npos)
      << node_->complaints();
}

}  // namespace
}  // namespace muster::engine::node
