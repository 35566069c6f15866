// Tasks of an allocated gang: starting, changing and stopping them, and their reports.
#include <sys/resource.h>

#include "engine/log_frame.h"
#include "engine/slurm/test_slurm_engine.h"
#include "workspace/tar_pack.h"

namespace muster::engine::slurm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

class Starting : public SlurmEngineTest {
 protected:
  void start(std::vector<launch::TaskPlan> plans) {
    call([&] { engine_->start(gang_, std::move(plans), loop_.into(started_)); });
  }
  void wait_for_order(const FakeNode& its_node) {
    wait_until([&] { return its_node.last<node::StartOrder>() != nullptr; });
  }
  Result<void> outcome() {
    wait_until([&] { return started_.has_value(); });
    return started_.value_or(Error{.what = "start() was never answered"});
  }
  /// A gang of two tasks with an allocation.
  void grant_allocation_for_two() {
    ask(gang_, request_for({"one", "two"}));
    wait_until([&] { return cluster_.submitted.size() == 1; });
    cluster_.run(17, {"n1", "n2"});
    one_ = node(hello(0));
    two_ = node(hello(1, 0, 17, "n2"));
    wait_for<AllocationGranted>(gang_);
  }
  void start_both() {
    launch::TaskPlan second = plan("two");
    second.node = "n2";
    start({plan("one"), second});
    wait_for_order(*one_);
    wait_for_order(*two_);
  }

  std::optional<Result<void>> started_;
  std::unique_ptr<FakeNode> one_;
  std::unique_ptr<FakeNode> two_;
};

TEST_F(Starting, ATaskGetsThePathOfItsFolder) {
  const auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);

  const auto* const order = its_node->last<node::StartOrder>();
  EXPECT_TRUE(order->is_shared);
  EXPECT_EQ(order->folder, (folder_ / "jobs").string());
  EXPECT_EQ(order->programs, "/opt/muster");
  EXPECT_TRUE(record(gang_).common.seats[0].started);
}

TEST_F(Starting, ATaskOnANodeThatDoesNotShareTheFolderIsInAFolderOfTheServersOwn) {
  is_shared_ = false;
  const auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);

  EXPECT_EQ(its_node->last<node::StartOrder>()->folder,
            (folder_ / "nodes" / "muster-0123456789abcdef").string());
  EXPECT_EQ(engine_->generated_folder(gang_, "main", job::Sandbox::kNone),
            (folder_ / "nodes/muster-0123456789abcdef/job1/1/main/generated").string());
}

TEST_F(Starting, AllTasksComeUpAndThenAnswer) {
  grant_allocation_for_two();
  start_both();
  one_->send(node::StartAnswer{});
  one_->send(node::AnsweredNews{});
  wait_for_polls();
  EXPECT_FALSE(started_);
  EXPECT_TRUE(reports_.empty());

  two_->send(node::StartAnswer{});

  EXPECT_TRUE(outcome());
  wait_until([&] { return reports_.size() == 1; });
  EXPECT_TRUE(std::holds_alternative<TaskAnswered>(reports_[0].what));
  EXPECT_EQ(reports_[0].task, "one");
}

TEST_F(Starting, IfATaskCannotBeStartedTheOthersAreEnded) {
  is_shared_ = false;
  grant_allocation_for_two();
  start_both();
  one_->send(node::StartAnswer{});
  two_->send(node::StartAnswer{{{.code = ErrorCode::kConflict, .what = "port 80 is taken"}}});
  wait_until([&] { return one_->last<node::StopOrder>() != nullptr; });
  EXPECT_FALSE(started_) << "one task still runs";
  one_->send(node::EndedNews{{.status = {.stopped = true}, .time = {}}});

  const auto how = outcome();

  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().what, "cannot start two: port 80 is taken");
  EXPECT_TRUE(reports_.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "jobs/job1/1/one"));
  EXPECT_EQ(engine_->adopt(gang_, "one"), AdoptionResult::kNothing);
  EXPECT_FALSE(record(gang_).common.seats[0].started);
}

TEST_F(Starting, AFailedStartCanBeRepeated) {
  const auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);
  its_node->send(node::StartAnswer{{{.code = ErrorCode::kConflict, .what = "port 80 is taken"}}});
  ASSERT_FALSE(outcome());
  its_node->orders.clear();
  started_.reset();

  start({plan()});
  wait_for_order(*its_node);
  its_node->send(node::StartAnswer{});

  EXPECT_TRUE(outcome());
}

TEST_F(Starting, AMusterNodeThatHoldsTheTaskOfAFailedStartGetsTheNextOrder) {
  auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);
  const uint64_t failed = its_node->last<node::StartOrder>()->start;
  its_node->send(node::StartAnswer{{{.code = ErrorCode::kConflict, .what = "port 80 is taken"}}});
  ASSERT_FALSE(outcome());
  started_.reset();
  its_node.reset();

  start({plan()});
  node::Hello again = hello();
  again.holds_task = true;
  again.start = failed;
  its_node = node(again);
  wait_for_order(*its_node);

  EXPECT_GT(its_node->last<node::StartOrder>()->start, failed);
  EXPECT_EQ(its_node->last<node::Welcome>()->start, its_node->last<node::StartOrder>()->start);
  its_node->send(node::StartAnswer{});
  EXPECT_TRUE(outcome());
}

TEST_F(Starting, ALostOrderIsSentAgain) {
  auto its_node = gang_with_allocation();
  its_node.reset();
  start({plan()});
  its_node = node(hello());
  wait_for_order(*its_node);
  its_node->send(node::StartAnswer{});

  EXPECT_TRUE(outcome());
}

TEST_F(Starting, AStartContinuesAfterABrokenConnection) {
  auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);
  its_node.reset();
  node::Hello again = hello();
  again.holds_task = true;
  its_node = node(again);
  wait_until([&] { return its_node->last<node::Welcome>() != nullptr; });
  its_node->send(node::StartAnswer{});

  EXPECT_TRUE(outcome());
  EXPECT_EQ(its_node->last<node::StartOrder>(), nullptr) << "it was started twice";
}

TEST_F(Starting, AStopEndsAStart) {
  const auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);
  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });
  wait_until([&] { return its_node->last<node::StopOrder>() != nullptr; });
  its_node->send(node::StartAnswer{{{.code = ErrorCode::kUnavailable, .what = "was stopped"}}});

  const auto how = outcome();

  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, ErrorCode::kUnavailable);
}

TEST_F(Starting, ALostAllocationFailsTheStart) {
  auto its_node = gang_with_allocation();
  start({plan()});
  wait_for_order(*its_node);
  cluster_.end(17, JobState::kCancelled, "CANCELLED");
  its_node.reset();

  const auto how = outcome();

  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, AllocationRevoked::Why::kCancelled);
  EXPECT_EQ(end_of("main"), nullptr);
}

TEST_F(Starting, WithoutAnAllocationThereIsNoStart) {
  start({plan()});
  EXPECT_EQ(outcome().error().code, ErrorCode::kUnavailable);
}

TEST_F(Starting, StorageNeedsAFolderThatTheNodesShare) {
  is_shared_ = false;
  const auto its_node = gang_with_allocation();
  launch::TaskPlan with_storage = plan();
  with_storage.volumes = {
      {.kind = job::Volume::Kind::kStorage, .source = "data", .target = "/data"}};
  start({with_storage});

  const auto how = outcome();

  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, ErrorCode::kInvalid);
  EXPECT_NE(how.error().to_string().find("node n1 does not see the server's folder"),
            std::string::npos);
}

// --- folders that are not shared

TEST_F(Starting, RecordsOfATaskAreCopiedAndContinueAfterABreak) {
  is_shared_ = false;
  auto its_node = gang_that_runs();
  const std::string frame = encode_frame({}, job::LogStream::kOutput, "hello\n");
  its_node->send(node::RecordNews{{.kind = FollowKind::kLog, .offset = 0, .bytes = frame}});
  wait_until([&] {
    auto cursor = engine_->open_log(gang_, "main");
    LogFrame read;
    return cursor && *(*cursor)->next(read) && read.bytes == "hello\n";
  });
  its_node.reset();
  node::Hello again = hello();
  again.holds_task = true;

  its_node = node(again);
  wait_until([&] { return its_node->last<node::Welcome>() != nullptr; });

  EXPECT_EQ(its_node->last<node::Welcome>()->log_offset, frame.size());
}

TEST_F(Starting, RecordsWaitForDiskSpaceAndTheEndWaitsForThem) {
  is_shared_ = false;
  auto its_node = gang_that_runs();
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);  // no file can be opened, like on a full disk

  its_node->send(node::RecordNews{{.kind = FollowKind::kRank, .offset = 0, .bytes = "3 8"}});
  its_node->send(node::EndedNews{});
  wait_for_polls(20);
  EXPECT_EQ(its_node->last<node::Farewell>(), nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);

  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  its_node.reset();
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(std::filesystem::exists(folder_ / "jobs/job1/1/main/ranks/3"));
}

TEST_F(Starting, TheEndIsReportedWhenItsNodeHasLeftThoughTheConnectionStays) {
  is_shared_ = false;
  const auto its_node = gang_that_runs();
  its_node->send(node::EndedNews{{.status = {.code = 3}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  EXPECT_EQ(end_of("main"), nullptr) << "the files on the node must be removed first";

  its_node->send(node::LeftNews{});

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_EQ(end_of("main")->status.code, 3);
}

TEST_F(Starting, EachTreeIsSentOverItsOwnStream) {
  is_shared_ = false;
  const auto its_node = gang_with_allocation();
  launch::TaskPlan with_tree = plan();
  with_tree.volumes = {{.kind = job::Volume::Kind::kTree, .source = "abc", .target = "/work"}};
  start({with_tree});
  wait_for_order(*its_node);
  const auto streams = its_node->last<node::StartOrder>()->trees;
  ASSERT_EQ(streams.size(), 1U);
  ASSERT_NE(streams[0], 0U);

  node::Hello for_stream = hello();
  for_stream.stream = streams[0];
  StreamCatch caught(loop_, brief_in(cluster_.submitted[0].script), for_stream);
  wait_until([&] { return caught.is_over; });

  EXPECT_NE(caught.bytes.find("of the tree"), std::string::npos);
}

TEST_F(Starting, AStreamIsNotOpenedByAMusterNodeOfAnotherJob) {
  is_shared_ = false;
  const auto its_node = gang_with_allocation();
  ask({"job2", 1}, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 2; });
  launch::TaskPlan with_tree = plan();
  with_tree.volumes = {{.kind = job::Volume::Kind::kTree, .source = "abc", .target = "/work"}};
  start({with_tree});
  wait_for_order(*its_node);
  node::Hello for_stream = hello();
  for_stream.stream = its_node->last<node::StartOrder>()->trees.at(0);

  StreamCatch thief(loop_, brief_in(cluster_.submitted[1].script), for_stream);
  wait_until([&] { return thief.is_hung_up; });
  EXPECT_EQ(thief.bytes, "");

  StreamCatch owner(loop_, brief_in(cluster_.submitted[0].script), for_stream);
  wait_until([&] { return owner.is_over; });
}

TEST_F(Starting, ArtifactsAreFetchedBeforeTheEndIsReported) {
  is_shared_ = false;
  const auto its_node = gang_with_allocation();
  launch::TaskPlan with_artifacts = plan();
  with_artifacts.volumes = {{.kind = job::Volume::Kind::kArtifacts, .target = "/out"}};
  start({with_artifacts});
  wait_for_order(*its_node);
  its_node->send(node::StartAnswer{});
  its_node->send(node::EndedNews{{.status = {}, .time = {}}});
  wait_until([&] { return its_node->last<node::ArtifactsOrder>() != nullptr; });
  EXPECT_EQ(its_node->last<node::Farewell>(), nullptr);
  EXPECT_EQ(end_of("main"), nullptr);

  its_node->send(node::StreamRefused{its_node->last<node::ArtifactsOrder>()->stream,
                                     {.code = ErrorCode::kInternal, .what = "its disk broke"}});

  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  EXPECT_TRUE(its_node->last<node::Farewell>()->keeps_artifacts) << "the node has the only copy";
  EXPECT_EQ(end_of("main"), nullptr) << "the files on the node must be removed first";
  its_node->hang_up();
  wait_until([&] { return end_of("main") != nullptr; });
  const std::string error = end_of("main")->status.error;
  EXPECT_TRUE(error.starts_with("cannot fetch its artifacts: its disk broke; they are left in "))
      << error;
  EXPECT_EQ(end_of("main")->status.code, 0);
}

/// A task of a node that does not share the folder has ended, and its artifacts are being fetched.
class FetchingArtifacts : public Starting {
 protected:
  FetchingArtifacts() { is_shared_ = false; }

  void end_task() {
    node_ = gang_with_allocation();
    launch::TaskPlan with_artifacts = plan();
    with_artifacts.volumes = {{.kind = job::Volume::Kind::kArtifacts, .target = "/out"}};
    start({with_artifacts});
    wait_for_order(*node_);
    node_->send(node::StartAnswer{});
    node_->send(node::EndedNews{{.status = {}, .time = {}}});
  }
  /// The connection of the next stream that the server orders.
  std::unique_ptr<StreamSource> next_stream() {
    wait_until([&] { return stream_ordered() > last_stream_; }, "no order to send artifacts");
    last_stream_ = stream_ordered();
    node::Hello for_stream = hello();
    for_stream.stream = last_stream_;
    auto source =
        std::make_unique<StreamSource>(loop_, brief_in(cluster_.submitted[0].script), for_stream);
    wait_until([&] { return source->is_open; });
    return source;
  }
  uint64_t stream_ordered() const {
    const auto* const order = node_->last<node::ArtifactsOrder>();
    return order == nullptr ? 0 : order->stream;
  }
  /// A folder with one file, as a tar in pieces.
  std::vector<std::string> pieces() {
    const auto made = folder_ / "made";
    EXPECT_TRUE(base::make_private_folder(made));
    EXPECT_TRUE(base::write_file(made / "model", std::string(20'000, 'm')));
    auto packer = workspace::TarPacker::open(made.string() + "/.", [](const auto&) {});
    EXPECT_TRUE(packer);
    std::string tar;
    for (auto piece = packer->next(); piece && !piece->empty(); piece = packer->next()) {
      tar += *piece;
    }
    constexpr size_t kPiece = 512;
    std::vector<std::string> pieces;
    for (size_t i = 0; i < tar.size(); i += kPiece) pieces.push_back(tar.substr(i, kPiece));
    return pieces;
  }
  bool has_model() const {
    const auto model = base::read_file(folder_ / "jobs/job1/artifacts/model");
    return model && model->size() == 20'000;
  }
  void wait_for_farewell() {
    wait_until([&] { return node_->last<node::Farewell>() != nullptr; }, "no farewell");
  }

  std::unique_ptr<FakeNode> node_;
  uint64_t last_stream_ = 0;
};

TEST_F(FetchingArtifacts, AStreamThatIsCutIsOrderedAgain) {
  end_task();
  const std::vector<std::string> sent = pieces();
  auto broken = next_stream();
  broken->send(node::StreamBytes{sent.front()});
  wait_until([&] { return broken->has_sent_all(); });
  wait_for_polls();  // the server reads it
  broken.reset();

  const auto again = next_stream();
  EXPECT_EQ(node_->last<node::Farewell>(), nullptr) << "the node has the only copy";
  for (const std::string& piece : sent) again->send(node::StreamBytes{piece});
  again->send(node::StreamEnd{});

  wait_for_farewell();
  EXPECT_FALSE(node_->last<node::Farewell>()->keeps_artifacts);
  EXPECT_TRUE(has_model());
  node_->hang_up();
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_EQ(end_of("main")->status.error, "");
}

TEST_F(FetchingArtifacts, AMachineWithoutADescriptorOrSpaceIsTriedAgain) {
  end_task();
  wait_until([&] { return stream_ordered() != 0; });
  last_stream_ = stream_ordered();
  node_->send(node::StreamRefused{last_stream_,
                                  {.code = ErrorCode::kExhausted, .what = "too many open files"}});

  const auto again = next_stream();
  EXPECT_EQ(node_->last<node::Farewell>(), nullptr) << "the node has the only copy";
  for (const std::string& piece : pieces()) again->send(node::StreamBytes{piece});
  again->send(node::StreamEnd{});

  wait_for_farewell();
  EXPECT_FALSE(node_->last<node::Farewell>()->keeps_artifacts);
  EXPECT_TRUE(has_model());
}

TEST_F(FetchingArtifacts, AnOrderThatALostConnectionMayHaveSwallowedIsRepeated) {
  end_task();
  wait_until([&] { return stream_ordered() != 0; });
  last_stream_ = stream_ordered();
  node_.reset();
  node::Hello again = hello();
  again.holds_task = true;
  node_ = node(again);
  wait_until([&] { return node_->last<node::Welcome>() != nullptr; });
  node_->send(node::EndedNews{{.status = {}, .time = {}}});

  const auto stream = next_stream();
  for (const std::string& piece : pieces()) stream->send(node::StreamBytes{piece});
  stream->send(node::StreamEnd{});

  wait_for_farewell();
  EXPECT_TRUE(has_model());
}

/// The transfer takes longer than `fetch_silence`, but something arrives all the time.
TEST_F(FetchingArtifacts, ATransferMayTakeAnyTimeWhileSomethingArrives) {
  constexpr std::chrono::milliseconds kSilence{3000};
  open([&](SlurmEngineOptions& options) { options.fetch_silence = kSilence; });
  end_task();
  const auto begin = std::chrono::steady_clock::now();
  const auto stream = next_stream();
  const std::vector<std::string> sent = pieces();
  for (size_t i = 0; i < sent.size(); ++i) {
    const auto until = begin + kSilence * 11 * (i + 1) / (10 * sent.size());
    wait_until([&] { return std::chrono::steady_clock::now() >= until; });
    stream->send(node::StreamBytes{sent[i]});
  }
  ASSERT_GT(std::chrono::steady_clock::now() - begin, kSilence);
  stream->send(node::StreamEnd{});

  wait_for_farewell();
  EXPECT_EQ(stream_ordered(), last_stream_) << "one transfer was enough";
  EXPECT_TRUE(has_model());
}

TEST_F(FetchingArtifacts, FilesThatTheNodeCannotReadAreNamed) {
  end_task();
  const auto stream = next_stream();
  for (const std::string& piece : pieces()) stream->send(node::StreamBytes{piece});
  stream->send(
      node::StreamEnd{.error = {}, .notes = {"'/out/key' cannot be read: Permission denied"}});

  wait_for_farewell();
  node_->hang_up();
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(has_model());
  EXPECT_EQ(end_of("main")->status.error,
            "its artifacts are incomplete: '/out/key' cannot be read: Permission denied");
  EXPECT_TRUE(end_of("main")->status.succeeded());
}

/// Two tasks on different nodes: one fetches its artifacts when Slurm takes the allocation away.
TEST_F(FetchingArtifacts, ATaskThatHasEndedByItselfIsNotLostWithItsAllocation) {
  grant_allocation_for_two();
  launch::TaskPlan first = plan("one");
  first.volumes = {{.kind = job::Volume::Kind::kArtifacts, .target = "/out"}};
  launch::TaskPlan second = plan("two");
  second.node = "n2";
  start({first, second});
  wait_for_order(*one_);
  wait_for_order(*two_);
  one_->send(node::StartAnswer{});
  two_->send(node::StartAnswer{});
  ASSERT_TRUE(outcome());
  one_->send(node::EndedNews{{.status = {}, .time = {}}});
  wait_until([&] { return one_->last<node::ArtifactsOrder>() != nullptr; });
  cluster_.end(17, JobState::kCancelled, "CANCELLED");
  one_.reset();
  two_.reset();

  wait_until([&] { return end_of("one") != nullptr && end_of("two") != nullptr; });

  EXPECT_TRUE(end_of("two")->status.lost);
  EXPECT_TRUE(end_of("one")->status.succeeded());
  EXPECT_EQ(end_of("one")->status.error, "cannot fetch its artifacts: its node is gone");
}

/// The next server waits for the muster-node, which still has the artifacts, when Slurm ends the job.
TEST_F(FetchingArtifacts, ATaskThatEndedBeforeARestartIsNotLostWithItsSlurmJob) {
  end_task();
  const TaskFolder folder{folder_ / "jobs/job1/1/main"};
  ASSERT_TRUE(base::write_file(folder.exit(), encode(ExitRecord{.status = {}})));
  wait_until([&] { return stream_ordered() != 0; });
  open();
  node_.reset();
  ASSERT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kEnded);
  cluster_.end(17, JobState::kCancelled, "CANCELLED");

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_FALSE(end_of("main")->status.lost);
  EXPECT_TRUE(end_of("main")->status.succeeded());
  EXPECT_EQ(end_of("main")->status.error, "cannot fetch its artifacts: its node is not connected");
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

// --- while it runs

TEST_F(Starting, ARecordThatCannotBeStoredIsSentAgainAfterAReconnection) {
  is_shared_ = false;
  auto its_node = gang_that_runs();
  const std::string first = encode_frame({}, job::LogStream::kOutput, "hello\n");
  const std::string second = encode_frame({}, job::LogStream::kOutput, "world\n");
  // As if the first record could not be stored: the second one leaves a gap.
  its_node->send(
      node::RecordNews{{.kind = FollowKind::kLog, .offset = first.size(), .bytes = second}});
  wait_until([&] { return its_node->is_hung_up; }, "the server keeps the connection");
  node::Hello again = hello();
  again.holds_task = true;
  its_node = node(again);
  wait_until([&] { return its_node->last<node::Welcome>() != nullptr; });
  ASSERT_EQ(its_node->last<node::Welcome>()->log_offset, 0U);

  its_node->send(
      node::RecordNews{{.kind = FollowKind::kLog, .offset = 0, .bytes = first + second}});

  wait_until([&] {
    auto cursor = engine_->open_log(gang_, "main");
    std::string text;
    LogFrame read;
    for (auto more = cursor ? (*cursor)->next(read) : Result<bool>(false); more && *more;
         more = (*cursor)->next(read)) {
      text += read.bytes;
    }
    return text == "hello\nworld\n";
  });
}

TEST_F(Starting, AStopIsSentAgainAfterAReconnection) {
  auto its_node = gang_that_runs();
  call([&] { engine_->stop(gang_, {"main", "no-such-task"}, StopMode::kGraceful); });
  wait_until([&] { return its_node->last<node::StopOrder>() != nullptr; });
  its_node.reset();
  node::Hello again = hello();
  again.holds_task = true;
  its_node = node(again);
  wait_until([&] { return its_node->last<node::StopOrder>() != nullptr; });
  its_node->send(node::EndedNews{{.status = {.stopped = true}, .time = {}}});

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_TRUE(end_of("main")->status.stopped);
  EXPECT_FALSE(end_of("main")->status.lost);
}

TEST_F(Starting, AChangeIsAnsweredByItsTask) {
  const auto its_node = gang_that_runs();
  std::optional<Result<void>> changed;
  call([&] { engine_->change_files(gang_, {{.task = "main"}}, loop_.into(changed)); });
  wait_until([&] { return its_node->last<node::ChangeOrder>() != nullptr; });
  EXPECT_FALSE(changed);
  its_node->send(
      node::ChangeAnswer{its_node->last<node::ChangeOrder>()->number,
                         Error{.code = ErrorCode::kConflict, .what = "a folder is in the way"}});

  wait_until([&] { return changed.has_value(); });

  EXPECT_EQ(changed->error().what, "cannot change the files of main: a folder is in the way");
}

TEST_F(Starting, AProgramWithARefusedStreamHasNotBegun) {
  const auto its_node = gang_that_runs();
  const auto exec = engine_->exec(gang_, "main", {.argv = {"nothing"}, .environment = {}},
                                  {.on_output = [](std::string_view, bool) { FAIL(); },
                                   .on_exit = [](const job::ExitStatus&) { FAIL(); }});
  ASSERT_TRUE(exec);
  std::optional<Result<void>> begun;
  (*exec)->when_begun([&](Result<void> how) { begun = std::move(how); });
  wait_until([&] { return its_node->last<node::ExecOrder>() != nullptr; });
  EXPECT_FALSE(begun);
  its_node->send(
      node::StreamRefused{its_node->last<node::ExecOrder>()->stream,
                          {.code = ErrorCode::kNotFound, .what = "no program 'nothing'"}});

  wait_until([&] { return begun.has_value(); });

  ASSERT_FALSE(*begun);
  EXPECT_EQ(begun->error().code, ErrorCode::kNotFound);
  EXPECT_EQ(begun->error().what, "no program 'nothing'");
}

TEST_F(Starting, TasksOnOneNodeReachEachOtherByItsLoopbackAndOthersByTheirHosts) {
  EXPECT_EQ(engine_->reach({"n1", "n1"}), launch::Reach::kLoopback);
  EXPECT_EQ(engine_->reach({"n1", "n2"}), launch::Reach::kHosts);
}

TEST_F(Starting, NodesAreAsSlurmListsThem) {
  wait_until([&] { return !engine_->nodes().empty(); });
  const Node node = engine_->nodes()[0];
  EXPECT_EQ(node.name, "n1");
  EXPECT_EQ(node.pool, "main");
  EXPECT_EQ(node.address, "10.0.0.1");
  EXPECT_EQ(node.cpu_milli, 8000);
  EXPECT_EQ(node.labels.at("partitions"), "main,long");
  EXPECT_EQ(node.labels.count("nvlink"), 1U);
}

}  // namespace
}  // namespace muster::engine::slurm
