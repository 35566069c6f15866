// Sends a workspace from a local folder to a server and into its store. The command line's client,
// the socket, the routes and the store on disk are real.
#include "cli/spec/send_workspace.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "access/secret_box.h"
#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "engine/fake_engine.h"
#include "http/server.h"
#include "notify/notifications.h"
#include "server/app.h"
#include "store/memory_store.h"
#include "workspace/manifest.h"
#include "workspace/tree_store.h"

namespace muster::cli::spec {
namespace {

using base::ErrorCode;

/// A private server on a thread of its own. Files that were sent to it stay in its folder.
class LiveServer {
 public:
  /// `breaks_at`: the number of the upload of chunks at which the server drops the connection and
  /// opens its socket anew; 0: never.
  LiveServer(const std::filesystem::path& folder, int breaks_at = 0)
      : socket_(folder / "muster.sock"), trees_(folder / "trees"), breaks_at_(breaks_at) {
    EXPECT_TRUE(controller_.recover());
    listen();
    thread_ = std::thread([this] { loop_.run(); });
  }
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;
  ~LiveServer() {
    loop_.post([this] {
      http_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  std::vector<std::string> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }
  int count_of(const std::string& request) const {
    const auto all = requests();
    return static_cast<int>(std::count(all.begin(), all.end(), request));
  }
  const workspace::TreeStore& trees() const { return trees_; }

 private:
  void listen() {
    http_ =
        std::make_unique<http::Server>(loop_, [this](http::Request request, http::Respond respond) {
          take(std::move(request), std::move(respond));
        });
    const auto listening = http_->listen(socket_);
    EXPECT_TRUE(listening) << listening.error().to_string();
  }
  void take(http::Request request, http::Respond respond) {
    const std::string name = request.method + " " + request.path;
    {
      const std::scoped_lock lock(mutex_);
      requests_.push_back(name);
    }
    if (name.starts_with("PUT ") && name.ends_with("/chunks") && --breaks_at_ == 0) {
      loop_.post([this] {
        // Holds the lock of a server's start. A client that finds no server waits for it, and does
        // not start a server of its own.
        const auto lock = base::await_lock(socket_.parent_path() / "start.lock");
        http_.reset();
        listen();
      });
      kept_.push_back(std::move(respond));  // a destroyed `respond` would answer with 500
      return;
    }
    app_.handler()(std::move(request), std::move(respond));
  }

  std::filesystem::path socket_;
  base::EventLoop loop_;
  store::MemoryStore store_;
  engine::FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  access::SecretBox box_{access::SecretBox::Key{}};
  control::Accounts accounts_{
      {.loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_}};
  control::Controller controller_{
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.user = "ada"}};
  workspace::TreeStore trees_;
  notify::Notifications notifications_{
      {.loop = loop_, .clock = clock_, .random = random_, .box = box_}};
  server::App app_{{.loop = loop_,
                    .controller = controller_,
                    .accounts = accounts_,
                    .clock = clock_,
                    .random = random_,
                    .owner = "ada",
                    .trees = trees_,
                    .notifications = notifications_},
                   {.version = "1"},
                   [] {}};
  std::unique_ptr<http::Server> http_;
  std::vector<http::Respond> kept_;
  int breaks_at_;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

constexpr const char* kPutChunks = "PUT /v1/projects/default/chunks";

class SendWorkspace : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("MUSTER_STATE_DIR", state_.path().c_str(), 1);
    ::setenv("TMPDIR", temporary_.path().c_str(), 1);
    ::unsetenv("MUSTER_WORKSPACE_LIMIT");
    std::filesystem::create_directory(folder());
    serve();
  }
  void TearDown() override {
    server_.reset();
    for (const char* const name : {"MUSTER_STATE_DIR", "TMPDIR", "MUSTER_WORKSPACE_LIMIT"}) {
      ::unsetenv(name);
    }
  }

  std::filesystem::path folder() const { return here_ / "work"; }
  void serve(int breaks_at = 0) {
    server_.reset();
    server_ = std::make_unique<LiveServer>(state_, breaks_at);
  }
  void write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((folder() / name).parent_path());
    std::ofstream(folder() / name, std::ios::binary) << content;
  }

  Result<SentWorkspace> send(WorkspaceOptions options = {}) {
    if (options.source.where.empty()) options.source.where = folder();
    testing::internal::CaptureStderr();
    auto sent = send_through(options);
    said_ = testing::internal::GetCapturedStderr();
    return sent;
  }
  static Result<SentWorkspace> send_through(const WorkspaceOptions& options) {
    MUSTER_TRY(Connection connection, Connection::open({}, "1"));
    return send_workspace(connection, "default", options);
  }
  /// A folder with the unpacked files of the tree, as a task would see them.
  std::filesystem::path unpacked(const std::string& tree) {
    const std::filesystem::path into = here_ / ("unpacked-" + std::to_string(++unpackings_));
    std::filesystem::create_directory(into);
    const auto done = server_->trees().unpack("default", tree, into);
    EXPECT_TRUE(done) << done.error().to_string();
    return into;
  }

  base::TestFolder state_;
  base::TestFolder here_;
  base::TestFolder temporary_;
  std::unique_ptr<LiveServer> server_;
  std::string said_;
  int unpackings_ = 0;
};

std::string content_of(const std::filesystem::path& file) {
  auto content = base::read_file(file);
  return content ? *content : "(" + content.error().what + ")";
}

TEST_F(SendWorkspace, TheFilesArriveAsTheyWere) {
  write("train.py", "print()");
  write("data/two\nlines", "x");
  write("empty", "");
  write("large", std::string((3 << 20) + 5, 'y'));
  std::filesystem::create_symlink("train.py", folder() / "link");
  std::filesystem::permissions(folder() / "train.py", std::filesystem::perms(0755));

  const auto sent = send();

  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent->files, 4U);
  EXPECT_EQ(sent->bytes, (3 << 20) + 5 + 7 + 1);
  const auto there = unpacked(sent->tree);
  EXPECT_EQ(content_of(there / "train.py"), "print()");
  EXPECT_EQ(content_of(there / "data/two\nlines"), "x");
  EXPECT_EQ(content_of(there / "large"), content_of(folder() / "large"));
  EXPECT_EQ(std::filesystem::read_symlink(there / "link"), "train.py");
  EXPECT_NE(std::filesystem::status(there / "train.py").permissions() &
                std::filesystem::perms::owner_exec,
            std::filesystem::perms::none);
  EXPECT_EQ(said_, "muster: workspace: 4 files, 3.1 MiB; sent 1.1 MiB\n") << "equal chunks go once";
}

TEST_F(SendWorkspace, AnUnchangedFolderIsNotSentAgainEvenToARestartedServer) {
  write("a", "one");
  const auto first = send();
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->sent, 3);
  serve();

  const auto again = send({.program = "gradient"});

  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->tree, first->tree);
  EXPECT_EQ(again->sent, 0);
  EXPECT_EQ(server_->count_of(kPutChunks), 0);
  EXPECT_EQ(said_, "gradient: workspace: 1 file, 3 B; nothing new to send\n");
}

TEST_F(SendWorkspace, OnlyTheNewChunksOfAChangedFolderAreSent) {
  write("large", std::string(2 << 20, 'x') + "end");
  write("small", "before");
  ASSERT_TRUE(send());
  const int before = server_->count_of(kPutChunks);
  write("small", "after");

  const auto sent = send();

  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent->sent, 5);
  EXPECT_EQ(server_->count_of(kPutChunks), before + 1);
}

TEST_F(SendWorkspace, AnUploadContinuesAfterTheServerIsRestarted) {
  serve(2);
  std::string large;
  for (int i = 0; large.size() < (size_t{6} << 20); ++i) large += std::to_string(i) + "\n";
  write("large", large);

  const auto sent = send();

  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(content_of(unpacked(sent->tree) / "large"), large);
}

TEST_F(SendWorkspace, IgnoredFilesAreNotSent) {
  write(".gitignore", "*.log\n");
  write("train.py", "x");
  write("debug.log", "x");
  write("data/big.bin", "x");

  const auto sent = send({.ignore = {"data/*"}});

  ASSERT_TRUE(sent) << sent.error().to_string();
  const auto there = unpacked(sent->tree);
  EXPECT_TRUE(std::filesystem::exists(there / "train.py"));
  EXPECT_FALSE(std::filesystem::exists(there / "debug.log"));
  EXPECT_FALSE(std::filesystem::exists(there / "data/big.bin"));
}

TEST_F(SendWorkspace, AFolderThatIsTooLargeIsRefusedBeforeAnUploadAndItsLargestFoldersAreNamed) {
  write("data/raw/big.bin", "");
  write("train.py", "x");
  std::filesystem::resize_file(folder() / "data/raw/big.bin", uintmax_t{2} << 30);

  const auto sent = send();

  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kInvalid);
  EXPECT_NE(sent.error().to_string().find("data/raw"), std::string::npos)
      << sent.error().to_string();
  EXPECT_EQ(server_->count_of(kPutChunks), 0);
}

TEST_F(SendWorkspace, TheAdviceNamesTheFlagsOfTheProgramThatReportsTheError) {
  write("a", "12");

  const auto own = send({.most_bytes = 1});
  const auto gradients = send(
      {.source = {.flags = {.ignore = "--ignoreFiles"}}, .most_bytes = 1, .program = "gradient"});

  ASSERT_TRUE(!own && !gradients);
  EXPECT_NE(own.error().advice.find("by --ignore,"), std::string::npos) << own.error().advice;
  EXPECT_NE(gradients.error().advice.find("by --ignoreFiles,"), std::string::npos);
}

TEST_F(SendWorkspace, TheLimitComesFromTheVariableUnlessTheCommandSetsIt) {
  write("a", std::string(2000, 'x'));
  ::setenv("MUSTER_WORKSPACE_LIMIT", "1K", 1);
  const auto refused = send();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);

  EXPECT_TRUE(send({.most_bytes = 4096})) << "the command's own limit takes precedence";
  ::setenv("MUSTER_WORKSPACE_LIMIT", "lots", 1);
  const auto unread = send();
  ASSERT_FALSE(unread);
  EXPECT_NE(unread.error().what.find("$MUSTER_WORKSPACE_LIMIT is 'lots'"), std::string::npos);
}

TEST_F(SendWorkspace, ALinkThatLeadsOutOfTheFolderIsRefusedAndNamed) {
  std::filesystem::create_symlink("../../etc/passwd", folder() / "out");

  const auto sent = send();

  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kInvalid);
  EXPECT_NE(sent.error().to_string().find("out"), std::string::npos);
}

TEST_F(SendWorkspace, AllCommittedFilesOfARepositoryAreSentAndNoTemporaryFileRemains) {
  write(".gitignore", "*.bin\n");
  write("weights.bin", "w");
  const std::string commands = "cd '" + folder().string() +
                               "' && git init -q && git add -f . && git -c user.name=a -c "
                               "user.email=a@b commit -q -m x";
  ASSERT_EQ(std::system(commands.c_str()), 0);

  const auto sent = send({.source = {.where = "file://" + folder().string()}});

  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent->commit.size(), 40U);
  EXPECT_EQ(content_of(unpacked(sent->tree) / "weights.bin"), "w");
  EXPECT_NE(said_.find("commit " + sent->commit.substr(0, 12) + ", 2 files"), std::string::npos)
      << said_;
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
}

TEST_F(SendWorkspace, AProjectThatDoesNotExistIsNamed) {
  write("a", "x");
  auto connection = Connection::open({}, "1");
  ASSERT_TRUE(connection);

  const auto sent = send_workspace(*connection, "nobodys", {.source = {.where = folder()}});

  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kNotFound);
  EXPECT_NE(sent.error().what.find("nobodys"), std::string::npos) << sent.error().what;
}

/// The fake git sends the SIGINT of a Ctrl-C while it would wait for its server.
TEST_F(SendWorkspace, AnInterruptEndsTheProcessAndRemovesTheFetchedFiles) {
  const std::filesystem::path programs = here_ / "bin";
  std::filesystem::create_directory(programs);
  ASSERT_TRUE(base::write_file(programs / "git", "#!/bin/sh\nkill -INT $PPID\nexit 1\n", 0700));
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (programs.string() + ":" + path).c_str(), 1);

  const auto interrupted = [] {
    ::signal(SIGINT, SIG_DFL);  // the test may have inherited SIG_IGN
    static_cast<void>(send_through({.source = {.where = "https://example.invalid/a.git"}}));
  };
  EXPECT_EXIT(interrupted(), testing::KilledBySignal(SIGINT), "");
  ::setenv("PATH", path.c_str(), 1);

  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
}

}  // namespace
}  // namespace muster::cli::spec
