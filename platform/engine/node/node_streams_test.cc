// The streams of a muster-node: programs beside the task's own, the task's own program, the files
// that a job brings along, and its artifacts.
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/folder/trees.h"
#include "engine/node/attempt_folder.h"
#include "engine/node/folder_streams.h"
#include "engine/node/program_streams.h"
#include "engine/node/test_server.h"

namespace muster::engine::node {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kPieces = 96;
/// Far more than sockets, pipes and the buffers of both ends hold.
constexpr size_t kMostBetween = 32 << 20;
constexpr int kLooks = 10;

class NodeStreams : public TestServer {
 protected:
  struct ReachedProgram {
    std::string output;
    std::string error;
    std::optional<job::ExitStatus> status;
    bool drained = false;
    std::function<void()> on_output = [] {};
    std::function<void()> on_drain = [] {};
    std::unique_ptr<Exec> exec;
  };

  std::shared_ptr<NodeConnection> stream(uint64_t number) {
    wait_until([&] { return streams_.count(number) > 0; });
    return streams_[number];
  }

  void connect(uint64_t number, ReachedProgram& program) {
    const auto conversation = std::make_shared<RunConversation>(
        loop_.loop(), job::ExitStatus{.signal = SIGKILL},
        ExecHandlers{.on_output =
                         [this, &program](std::string_view bytes, bool is_error) {
                           (is_error ? program.error : program.output) += bytes;
                           program.on_output();
                           loop_.look();
                         },
                     .on_exit =
                         [this, &program](const job::ExitStatus& status) {
                           program.status = status;
                           loop_.look();
                         },
                     .on_drain =
                         [this, &program] {
                           program.drained = true;
                           program.on_drain();
                           loop_.look();
                         }});
    program.exec = near_end_of(conversation);
    auto line = stream(number);
    streams_.erase(number);
    conversation->connected(link_program(std::move(line), conversation));
  }

  void exec(const ExecPlan& plan, ReachedProgram& program) {
    line_->send(ExecOrder{++last_stream_, plan});
    connect(last_stream_, program);
  }
  void wait_for_exit_of(const ReachedProgram& program) {
    wait_until([&] { return program.status.has_value(); });
  }

  void start_sleeper() {
    open();
    // A sanitizer keeps freed memory for a while, which must not count.
    run_node({{"ASAN_OPTIONS", "quarantine_size_mb=1"}});
    StartOrder asked =
        order("echo up; while [ ! -e /generated/end ]; do sleep 0.05; done; echo over");
    asked.plan.environment["SECRET"] = "of the task";
    start_well(asked);
    wait_for_log("up");
  }
  /// Runs a short program. Once its end arrives, the node's loop has run several turns.
  std::string look(const std::string& script) {
    ReachedProgram program;
    exec({.argv = {"sh", "-c", script}, .environment = {}}, program);
    wait_for_exit_of(program);
    return program.output;
  }
  /// The peak memory of the node's program.
  size_t peak_of_node() const {
    std::ifstream status("/proc/" + std::to_string(node_->pid()) + "/status");
    for (std::string word; status >> word;) {
      size_t kilobytes = 0;
      if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
    }
    ADD_FAILURE() << "the node is gone";
    return 0;
  }

  void end_sleeper() {
    line_->send(
        ChangeOrder{1, {.task = "main", .files = {{.path = "end", .content = ""}}, .hosts = {}}});
    wait_for<EndedNews>();
    send_farewell();
  }

  void kill_shim() const {
    const std::string folder = '\0' + task_on_node().path.string() + '\0';
    int killed = 0;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(process.path() / "cmdline");
      const std::string line(std::istreambuf_iterator<char>(file), {});
      if (!line.ends_with(folder)) continue;
      ++killed;
      EXPECT_EQ(::kill(std::stoi(process.path().filename()), SIGKILL), 0);
    }
    EXPECT_EQ(killed, 1);
  }

  uint64_t last_stream_ = 100;
};

TEST_F(NodeStreams, AProgramRunsBesideTheTask) {
  start_sleeper();
  ReachedProgram program;
  exec({.argv = {"sh", "-c", "cat; echo $SECRET $MORE >&2; hostname; exit 5"},
        .environment = {{"MORE", "and more"}}},
       program);
  program.exec->write("input\n");
  program.exec->close_input();
  wait_for_exit_of(program);

  EXPECT_EQ(program.output, "input\njob-main\n");
  EXPECT_EQ(program.error, "of the task and more\n");
  EXPECT_EQ(program.status->code, 5);
  end_sleeper();
}

TEST_F(NodeStreams, TheEndOfAKilledShimIsWrittenIntoTheSpaceThatWasReservedForIt) {
  start_sleeper();
  struct stat reserved{};
  ASSERT_EQ(::stat(task_on_node().exit().c_str(), &reserved), 0);

  kill_shim();

  EXPECT_TRUE(wait_for<EndedNews>().end.status.lost);
  struct stat written{};
  ASSERT_EQ(::stat(task_on_node().exit().c_str(), &written), 0);
  EXPECT_EQ(written.st_ino, reserved.st_ino) << "a full disk has no space for another file";
  send_farewell();
}

TEST_F(NodeStreams, AProgramsTerminalChangesItsSize) {
  start_sleeper();
  ReachedProgram program;
  exec({.argv = {"sh", "-c", "stty size; read line; stty size"},
        .environment = {},
        .terminal = true,
        .rows = 33,
        .columns = 99},
       program);
  wait_until([&] { return program.output.find("33 99") != std::string::npos; });
  program.exec->resize(44, 111);
  program.exec->write("\n");
  wait_for_exit_of(program);

  EXPECT_NE(program.output.find("44 111"), std::string::npos) << program.output;
  end_sleeper();
}

TEST_F(NodeStreams, MuchDataPassesInBothDirections) {
  start_sleeper();
  ReachedProgram program;
  exec({.argv = {"cat"}, .environment = {}}, program);
  constexpr size_t kMuch = 8 << 20;
  std::string sent;
  while (sent.size() < kMuch) sent += "line " + std::to_string(sent.size()) + "\n";
  for (size_t at = 0; at < sent.size();) {
    if (program.exec->waiting() > Exec::kHigh) {
      program.drained = false;
      wait_until([&] { return program.drained; });
    }
    program.exec->write(std::string_view(sent).substr(at, 64 << 10));
    at += 64 << 10;
  }
  program.exec->close_input();
  wait_for_exit_of(program);

  EXPECT_TRUE(program.output == sent);
  end_sleeper();
}

TEST_F(NodeStreams, ASlowReaderBlocksTheProgram) {
  start_sleeper();
  const size_t before = peak_of_node();
  ReachedProgram program;
  exec({.argv = {"sh", "-c",
                 "for i in $(seq " + std::to_string(kPieces) +
                     "); do head -c 1048576 /dev/zero; echo >>/generated/written; done"},
        .environment = {}},
       program);
  wait_until([&] { return !program.output.empty(); });

  program.exec->pause(true);
  const size_t read = program.output.size();
  for (int i = 0; i < kLooks; ++i) {
    EXPECT_LT(std::stoul(look("cat /generated/written 2>/dev/null | wc -l")),
              read / kPiece + kMostBetween / kPiece);
  }
  EXPECT_EQ(program.output.size(), read);

  // Reads one piece at a time, like a client whose own reader is slow.
  program.on_output = [&] {
    program.exec->pause(true);
    loop_.loop().post([&] {
      if (program.exec) program.exec->pause(false);
    });
  };
  program.exec->pause(false);
  wait_for_exit_of(program);
  EXPECT_EQ(program.output.size(), kPieces * kPiece);
  EXPECT_LT(peak_of_node() - before, kMostBetween);
  end_sleeper();
}

TEST_F(NodeStreams, AProgramThatReadsSlowlyBlocksTheWriter) {
  start_sleeper();
  const size_t before = peak_of_node();
  ReachedProgram program;
  exec({.argv = {"sh", "-c", "while [ ! -e /generated/go ]; do sleep 0.02; done; wc -c"},
        .environment = {}},
       program);
  const std::string piece(64 << 10, 'x');
  size_t written = 0;
  program.on_drain = [&] {
    while (written < kPieces * kPiece && program.exec->waiting() <= Exec::kHigh) {
      program.exec->write(piece);
      written += piece.size();
    }
    if (written == kPieces * kPiece) program.exec->close_input();
  };
  program.on_drain();

  for (int i = 0; i < kLooks; ++i) {
    look("true");
    EXPECT_LT(written, kMostBetween);
  }
  EXPECT_GT(program.exec->waiting(), Exec::kHigh);

  look(">/generated/go");
  wait_for_exit_of(program);
  EXPECT_EQ(program.output, std::to_string(kPieces * kPiece) + "\n");
  EXPECT_LT(peak_of_node() - before, kMostBetween);
  end_sleeper();
}

TEST_F(NodeStreams, AHangUpEndsTheProgram) {
  start_sleeper();
  ReachedProgram program;
  exec({.argv = {"sh", "-c",
                 "exec 2>/dev/null; trap 'echo hung up >>/generated/hup; exit' HUP; echo in; while "
                 ":; do sleep 0.05; done"},
        .environment = {}},
       program);
  wait_until([&] { return program.output.find("in") != std::string::npos; });

  program.exec.reset();

  ReachedProgram look;
  exec({.argv = {"sh", "-c",
                 "while [ ! -e /generated/hup ]; do sleep 0.02; done; cat /generated/hup"},
        .environment = {}},
       look);
  wait_for_exit_of(look);
  EXPECT_EQ(look.output, "hung up\n");
  end_sleeper();
}

TEST_F(NodeStreams, AMissingProgramIsRefused) {
  start_sleeper();
  line_->send(ExecOrder{7, {.argv = {"no-such-program"}, .environment = {}}});

  const auto& refused = wait_for<StreamRefused>();

  EXPECT_EQ(refused.stream, 7u);
  EXPECT_EQ(refused.error.code, base::ErrorCode::kNotFound);
  EXPECT_NE(refused.error.what.find("no-such-program"), std::string::npos);
  end_sleeper();
  EXPECT_TRUE(streams_.empty());
}

TEST_F(NodeStreams, AttachesToTheTasksProgram) {
  open();
  run_node();
  StartOrder asked = order("read line; echo got $line; read more; echo got $more; exit 4");
  asked.plan.input = true;
  start_well(asked);
  ReachedProgram program;
  line_->send(AttachOrder{++last_stream_});
  connect(last_stream_, program);
  program.exec->write("one\n");
  wait_until([&] { return program.output == "got one\n"; });
  program.exec->write("two\n");
  wait_for_exit_of(program);

  EXPECT_EQ(program.output, "got one\ngot two\n");
  EXPECT_EQ(program.status->code, 4);
  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 4);
  send_farewell(4);
}

TEST_F(NodeStreams, SendsFilesToTheNodeAndArtifactsBack) {
  open();
  run_node();
  const auto tree = folder_ / "tree";
  ASSERT_TRUE(base::make_private_folder(tree / "below"));
  ASSERT_TRUE(
      base::write_file(tree / "script.sh", "#!/bin/sh\ncat $(dirname $0)/below/data\n", 0755));
  ASSERT_TRUE(base::write_file(tree / "below" / "data", std::string(3 << 20, 'x') + "the end\n"));
  StartOrder asked =
      order("/code/script.sh | tail -c 8; mkdir /artifacts/out; echo model >/artifacts/out/model");
  asked.plan.project = "team";
  asked.plan.volumes = {
      {.kind = job::Volume::Kind::kTree, .source = "tree-1", .target = "/code", .read_only = true},
      {.kind = job::Volume::Kind::kArtifacts, .source = "", .target = "/artifacts"}};
  asked.trees = {41, 0};
  FolderSender sender;
  wait_for_line();
  auto mirror = Mirror::open({folder_ / "jobs" / "job-1" / "2" / "main"});
  ASSERT_TRUE(mirror);
  mirror_.emplace(*std::move(mirror));
  line_->send(asked);
  sender.send(stream(41), tree);
  EXPECT_EQ(wait_for<EndedNews>().end.status.code, 0);
  EXPECT_EQ(log(), "the end\n");

  const auto fetched = folder_ / "fetched";
  ASSERT_TRUE(base::make_private_folder(fetched));
  FolderReceiver receiver(loop_.loop());
  std::optional<base::Result<void>> done;
  line_->send(ArtifactsOrder{42});
  receiver.receive(stream(42), fetched, 0, loop_.into(done));
  wait_until([&] { return done.has_value(); });

  EXPECT_TRUE(*done) << done->error().to_string();
  const auto model = base::read_file(fetched / "out" / "model");
  ASSERT_TRUE(model);
  EXPECT_EQ(*model, "model\n");
  send_farewell();
  EXPECT_FALSE(std::filesystem::exists(node_folder()));
}

TEST_F(NodeStreams, ArtifactsThatCannotBeReadAreNamed) {
  // Root reads every file, but for programs without these capabilities.
  if (::geteuid() == 0) {
    ASSERT_EQ(::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0), 0);
  }
  open();
  run_node();
  StartOrder asked = order("echo a >/artifacts/a; echo b >/artifacts/b; chmod 0 /artifacts/b");
  asked.plan.volumes = {
      {.kind = job::Volume::Kind::kArtifacts, .source = "", .target = "/artifacts"}};
  start_well(asked);
  wait_for<EndedNews>();

  const auto fetched = folder_ / "fetched";
  ASSERT_TRUE(base::make_private_folder(fetched));
  FolderReceiver receiver(loop_.loop());
  std::optional<base::Result<void>> done;
  std::vector<std::string> notes;
  line_->send(ArtifactsOrder{42});
  receiver.receive(stream(42), fetched, 0, loop_.into(done),
                   {.on_piece = nullptr,
                    .on_complete = [&](const std::vector<std::string>& all) { notes = all; }});
  wait_until([&] { return done.has_value(); });

  EXPECT_TRUE(*done) << done->error().to_string();
  EXPECT_TRUE(std::filesystem::exists(fetched / "a"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("/b' cannot be read"), std::string::npos) << notes[0];
  send_farewell();
}

TEST_F(NodeStreams, ArtifactsThatTheServerCouldNotFetchAreLeftOnTheNode) {
  open();
  run_node();
  StartOrder asked = order("echo model >/artifacts/model");
  asked.plan.volumes = {
      {.kind = job::Volume::Kind::kArtifacts, .source = "", .target = "/artifacts"}};
  start_well(asked);
  wait_for<EndedNews>();

  line_->send(Farewell{.code = 0, .keeps_artifacts = true});
  wait_for_exit();

  EXPECT_EQ(node_->code(), 0) << node_->complaints();
  const auto left = node_folder() / "job-1" / "artifacts";
  EXPECT_TRUE(std::filesystem::exists(left / "model"));
  EXPECT_FALSE(std::filesystem::exists(task_on_node().path)) << "its keys remain on the node";
  EXPECT_NE(node_->complaints().find(left.string()), std::string::npos) << node_->complaints();
  remove_forsaken_attempts(node_folder());
  EXPECT_TRUE(std::filesystem::exists(left / "model")) << "they belong to the user now";
}

TEST_F(NodeStreams, AStopWhileFilesAreSentFailsTheStart) {
  open();
  run_node();
  StartOrder asked = order("true");
  asked.plan.volumes = {{.kind = job::Volume::Kind::kTree, .source = "tree-1", .target = "/code"}};
  asked.trees = {41};
  wait_for_line();
  line_->send(asked);
  const auto tree = stream(41);

  line_->send(StopOrder{StopMode::kNow});
  tree->send(StreamBytes{"of no use any more"});

  const auto& answer = wait_for<StartAnswer>();
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, base::ErrorCode::kUnavailable) << answer.error->to_string();
  send_farewell();
}

}  // namespace
}  // namespace muster::engine::node
