#include "engine/container/image_keeper.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_folder.h"
#include "engine/container/scripted_daemon.h"
#include "engine/folder/image_account.h"
#include "workspace/small_archive.h"

namespace muster::engine {
namespace {

using base::ErrorCode;
using launch::ImageFacts;

constexpr const char* kImage = R"({"Id":"sha256:abc","Architecture":"amd64","Os":"linux","Config":{
    "User":"mpi","WorkingDir":"/work","Entrypoint":["/entry"],"Cmd":["run"],
    "Env":["PATH=/usr/bin","EMPTY="]}})";

http::Response tar_of(std::vector<workspace::ArchiveEntry> entries) {
  http::Response response{.content_type = "application/x-tar"};
  response.body = workspace::make_archive(entries);
  return response;
}

/// An engine's description of a file.
http::Response stat_of(const std::string& status) {
  http::Response response;
  response.headers["x-docker-container-path-stat"] = base::to_base64(status);
  return response;
}

class ImageKeeperTest : public testing::Test {
 protected:
  ImageKeeperTest() {
    daemon_.answer("GET /containers/json", "[]");
    daemon_.answer("POST /containers/create", [this](const http::Request& request) {
      made_.push_back(request.body);
      http::Response response{.status = 201};
      response.body = R"({"Id":"look"})";
      return response;
    });
    daemon_.answer("DELETE /containers/look", "", 204);
    daemon_.answer("GET /containers/look/json", [this](const http::Request&) {
      http::Response response{.status = is_removed_ ? 404 : 200};
      response.body = is_removed_
                          ? R"({"message":"No such container: look"})"
                          : R"({"Id":"look","State":{"Status":"created"},"Config":{"Labels":{}}})";
      return response;
    });
    // The server passes HEAD on as GET.
    daemon_.answer("GET /containers/look/archive", [this](const http::Request& request) {
      const std::string path = request.query.find("path")->second;
      const auto file = is_removed_ ? files_.end() : files_.find(path);
      if (file != files_.end()) return tar_of({file->second});
      const auto stat = is_removed_ ? stats_.end() : stats_.find(path);
      if (stat != stats_.end()) return stat_of(stat->second);
      http::Response missing{.status = 404};
      missing.body = R"({"message":"no such file"})";
      return missing;
    });
    put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nmpi:x:1000:1001::/home/mpi:/bin/sh\n");
    put("/etc/group", "root:x:0:\nmpi:x:1001:\n");
    stats_["/bin/sh"] = R"({"name":"sh","size":1,"mode":134218239,"linkTarget":"dash"})";
    stats_["/usr/sbin/sshd"] = R"({"name":"sshd","size":1,"mode":493,"linkTarget":""})";
  }

  void put(const std::string& path, const std::string& content) {
    files_[path] = {.path = path.substr(path.rfind('/') + 1), .content = content, .link = {}};
  }

  static ImageRequest image_request(const std::string& user = "") {
    return {.task = "worker-0", .node = "gpu-1", .image = "train:1", .user = user};
  }

  /// The result.
  Result<ImageFacts> prepared(const ImageRequest& request,
                              const std::string& architecture = "amd64") {
    std::optional<Result<ImageFacts>> result;
    const auto interest = keeper_.prepare(
        request, architecture,
        [this](const PullProgress& progress) { progress_.push_back(progress.status); },
        [&](Result<ImageFacts> facts) { result = std::move(facts); });
    EXPECT_TRUE(run_until(loop_, [&] { return result.has_value(); }));
    return result ? *result : Result<ImageFacts>(base::Error{.what = "nothing came of it"});
  }

  /// The image exists after it was pulled.
  void have_registry(const std::string& stream) {
    daemon_.answer("POST /images/create", [this, stream](const http::Request& request) {
      const auto login = request.headers.find("x-registry-auth");
      login_ = login == request.headers.end() ? "" : login->second;
      if (stream.find("error") == std::string::npos) {
        daemon_.answer("GET /images/train:1/json", kImage);
      }
      http::Response response;
      response.body = stream;
      return response;
    });
  }

  base::TestFolder folder_;
  base::EventLoop loop_;
  ScriptedDaemon daemon_{loop_, folder_ / "engine.sock"};
  DockerClient client_{loop_, UnixEndpoint{folder_ / "engine.sock"}};
  ImageKeeper keeper_{loop_, client_, "owner"};
  std::map<std::string, workspace::ArchiveEntry> files_;
  std::map<std::string, std::string> stats_;
  std::vector<std::string> made_;  ///< the bodies of containers
  std::vector<std::string> progress_;
  std::string login_;
  bool is_removed_ = false;  ///< another program has removed the container
};

TEST_F(ImageKeeperTest, InspectsAnImageWithoutRunningIt) {
  daemon_.answer("GET /images/train:1/json", kImage);

  const auto facts = prepared(image_request());

  ASSERT_TRUE(facts) << facts.error().to_string();
  const ImageFacts expected{
      .image = "train:1",
      .id = "sha256:abc",
      .entrypoint = {"/entry"},
      .command = {"run"},
      .environment = {{"EMPTY", ""}, {"PATH", "/usr/bin"}},
      .folder = "/work",
      .account = {.uid = 1000, .gid = 1001, .name = "mpi", .home = "/home/mpi"},
      .sshd = "/usr/sbin/sshd",
      .has_ssh = false,
      .has_shell = true};
  EXPECT_EQ(*facts, expected);
  EXPECT_EQ(daemon_.count("POST /containers/look/start"), 0);
  ASSERT_TRUE(run_until(loop_, [&] { return daemon_.count("DELETE /containers/look") == 1; }));
}

TEST_F(ImageKeeperTest, CreatesALabelledContainerOfTheFoundImage) {
  daemon_.answer("GET /images/train:1/json", kImage);
  ASSERT_TRUE(prepared(image_request()));

  ASSERT_EQ(made_.size(), 1U);
  const auto body = nlohmann::json::parse(made_.front());
  EXPECT_EQ(body["Image"], "sha256:abc");
  EXPECT_EQ(body["Labels"][kOwnerLabel], "owner");
  EXPECT_TRUE(body["Labels"].contains(kLookLabel));
}

TEST_F(ImageKeeperTest, InspectsAnImageOnceForAllUsers) {
  daemon_.answer("GET /images/train:1/json", kImage);
  ASSERT_TRUE(prepared(image_request()));

  const auto root = prepared(image_request("root"));
  const auto number = prepared(image_request("5000:6000"));

  EXPECT_EQ(root->account.home, "/root");
  EXPECT_EQ(number->account, (launch::Account{.uid = 5000, .gid = 6000, .name = "", .home = "/"}));
  EXPECT_EQ(made_.size(), 1U);
}

TEST_F(ImageKeeperTest, SharesAnInspectionInProgress) {
  daemon_.answer("GET /images/train:1/json", kImage);
  std::vector<std::shared_ptr<void>> interests;
  int done = 0;
  for (int i = 0; i < 50; ++i) {
    interests.push_back(
        keeper_.prepare(image_request(), "amd64", {}, [&](const Result<ImageFacts>& facts) {
          EXPECT_TRUE(facts);
          ++done;
        }));
  }

  ASSERT_TRUE(run_until(loop_, [&] { return done == 50; }));

  EXPECT_EQ(made_.size(), 1U);
}

TEST_F(ImageKeeperTest, FollowsLinksToTheFileOfUsers) {
  daemon_.answer("GET /images/train:1/json", kImage);
  files_["/etc/passwd"] = {.path = "passwd", .content = {}, .link = "../share/passwd"};
  put("/share/passwd", "mpi:x:7:8::/srv:/bin/sh\n");

  EXPECT_EQ(prepared(image_request())->account.uid, 7U);
}

TEST_F(ImageKeeperTest, AcceptsAnImageWithOnlyAProgram) {
  daemon_.answer("GET /images/train:1/json", R"({"Id":"sha256:bare","Architecture":"amd64"})");
  files_.clear();
  stats_.clear();

  const auto facts = prepared(image_request());

  ASSERT_TRUE(facts) << facts.error().to_string();
  EXPECT_EQ(facts->account.uid, 0U);
  EXPECT_FALSE(facts->has_shell);
  EXPECT_EQ(facts->sshd, "");
}

TEST_F(ImageKeeperTest, RecordsNothingOfAContainerThatAnotherProgramHasRemoved) {
  daemon_.answer("GET /images/train:1/json", kImage);
  is_removed_ = true;

  const auto failed = prepared(image_request());

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable) << failed.error().to_string();
  is_removed_ = false;
  const auto facts = prepared(image_request("mpi"));
  ASSERT_TRUE(facts) << facts.error().to_string();
  EXPECT_EQ(facts->sshd, "/usr/sbin/sshd");
  EXPECT_TRUE(facts->has_shell);
}

TEST_F(ImageKeeperTest, ListsTheUsersOfTheImage) {
  daemon_.answer("GET /images/train:1/json", kImage);

  const auto facts = prepared(image_request("ada"));

  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(facts.error().what, "image 'train:1': the image has no user 'ada'");
  EXPECT_EQ(facts.error().advice, "the image has root, mpi");
}

TEST_F(ImageKeeperTest, FetchesAMissingImageWithProgressAndLogin) {
  have_registry(R"({"status":"Downloading","id":"l1","progressDetail":{"current":1,"total":2}})"
                "\n"
                R"({"status":"Download complete","id":"l1"})"
                "\n");
  ImageRequest with_login = image_request();
  with_login.username = "ada";
  with_login.password = "geheim";

  ASSERT_TRUE(prepared(with_login));

  EXPECT_EQ(progress_, (std::vector<std::string>{"Downloading", "Download complete"}));
  EXPECT_FALSE(login_.empty());
}

TEST_F(ImageKeeperTest, FetchesAgainByPolicy) {
  daemon_.answer("GET /images/train:1/json", kImage);
  have_registry(R"({"status":"Already exists","id":"l1"})");
  ImageRequest always = image_request();
  always.pull = job::PullPolicy::kAlways;

  ASSERT_TRUE(prepared(image_request()));
  EXPECT_EQ(daemon_.count("POST /images/create"), 0);
  ASSERT_TRUE(prepared(always));
  EXPECT_EQ(daemon_.count("POST /images/create"), 1);
}

TEST_F(ImageKeeperTest, FetchesNothingByPolicy) {
  have_registry("{}");
  ImageRequest never = image_request();
  never.pull = job::PullPolicy::kNever;

  const auto facts = prepared(never);

  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::kNotFound);
  EXPECT_NE(facts.error().what.find("--image-pull-policy never"), std::string::npos);
  EXPECT_EQ(daemon_.count("POST /images/create"), 0);
}

TEST_F(ImageKeeperTest, AsksNoRegistryForALocalImage) {
  daemon_.answer("GET /images/localhost/train/json", kImage);
  ImageRequest local = image_request();
  local.image = "localhost/train";
  local.pull = job::PullPolicy::kAlways;
  EXPECT_TRUE(prepared(local));

  local.image = "localhost/other";
  const auto missing = prepared(local);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(daemon_.count("POST /images/create"), 0);
}

TEST_F(ImageKeeperTest, ReportsWhyAnImageCannotBeFetched) {
  const std::pair<std::string, ErrorCode> cases[] = {
      {"reading manifest 1: unauthorized: authentication required", ErrorCode::kRefused},
      {"reading manifest 1: manifest unknown", ErrorCode::kNotFound},
      {"writing blob: no space left on device", ErrorCode::kExhausted},
      {"dial tcp: lookup registry: no such host", ErrorCode::kUnavailable},
  };
  for (const auto& [words, code] : cases) {
    have_registry(R"({"errorDetail":{"message":")" + words + R"("},"error":")" + words + R"("})");
    const auto facts = prepared(image_request());
    ASSERT_FALSE(facts) << words;
    EXPECT_EQ(facts.error().code, code) << facts.error().to_string();
    EXPECT_NE(facts.error().what.find(words), std::string::npos) << facts.error().what;
    EXPECT_TRUE(facts.error().what.starts_with("node 'gpu-1': ")) << facts.error().what;
  }
}

TEST_F(ImageKeeperTest, RefusesAnImageForAnotherProcessor) {
  daemon_.answer("GET /images/train:1/json", R"({"Id":"sha256:arm","Architecture":"arm64"})");

  const auto facts = prepared(image_request());

  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::kRefused);
  EXPECT_EQ(facts.error().what, "image 'train:1' is for arm64; node 'gpu-1' is amd64");
  EXPECT_TRUE(made_.empty());
}

TEST_F(ImageKeeperTest, RemovesContainersOfAnEarlierServer) {
  daemon_.answer("GET /images/train:1/json", kImage);
  daemon_.answer("GET /containers/json",
                 R"([{"Id":"old","Names":["/x"],"State":"created","Labels":{
                     "org.muster.owner":"owner","org.muster.look":"another"}}])");
  daemon_.answer("DELETE /containers/old", "", 204);

  ASSERT_TRUE(prepared(image_request()));

  ASSERT_TRUE(run_until(loop_, [&] { return daemon_.count("DELETE /containers/old") == 1; }));
}

TEST_F(ImageKeeperTest, CancelsAPullWithoutWaitingCallers) {
  daemon_.on_asked = [&](const std::string& what) {
    if (what == "POST /images/create") daemon_.hang();
  };
  bool is_reported = false;
  auto interest =
      keeper_.prepare(image_request(), "amd64", {}, [&](const auto&) { is_reported = true; });
  ASSERT_TRUE(run_until(loop_, [&] { return daemon_.count("POST /images/create") == 1; }));

  interest.reset();

  daemon_.on_asked = {};
  daemon_.hang(false);
  have_registry("{}");
  ASSERT_TRUE(prepared(image_request()));  // starts a new pull
  EXPECT_EQ(daemon_.count("POST /images/create"), 2);
  EXPECT_FALSE(is_reported);
}

TEST_F(ImageKeeperTest, ACancelledInspectionLeavesNoContainer) {
  daemon_.answer("GET /images/train:1/json", kImage);
  std::shared_ptr<void> interest;
  daemon_.on_asked = [&](const std::string& what) {
    if (what == "GET /containers/look/archive /bin/sh") interest.reset();
  };
  interest = keeper_.prepare(image_request(), "amd64", {}, [](const auto&) { FAIL(); });

  ASSERT_TRUE(run_until(loop_, [&] { return daemon_.count("DELETE /containers/look") == 1; }));
}

TEST_F(ImageKeeperTest, ReportsAnEngineThatDoesNotAnswer) {
  daemon_.die();

  const auto facts = prepared(image_request());

  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(facts.error().what.find("registry"), std::string::npos) << facts.error().to_string();
}

}  // namespace
namespace {

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a comment\n"
    "broken:x:many:0::/:\n"
    "mpi:x:1000:1001:MPI,,,:/home/mpi:\n"
    "4711:x:12:13::/srv:/bin/sh\n"
    "nohome:x:14:15:::/bin/sh";
constexpr const char* kGroup =
    "root:x:0:\n"
    "mpi:x:1001:ada\n"
    "video:x:44:\n";

launch::Account account(uid_t uid, gid_t gid, const std::string& name, const std::string& home) {
  return {.uid = uid, .gid = gid, .name = name, .home = home};
}

TEST(FindAccount, ReadsEveryFormOfAUser) {
  const std::pair<std::string, launch::Account> cases[] = {
      {"", account(0, 0, "root", "/root")},
      {"root", account(0, 0, "root", "/root")},
      {"0", account(0, 0, "root", "/root")},
      {"mpi", account(1000, 1001, "mpi", "/home/mpi")},
      {"1000", account(1000, 1001, "mpi", "/home/mpi")},
      {"mpi:video", account(1000, 44, "mpi", "/home/mpi")},
      {"mpi:77", account(1000, 77, "mpi", "/home/mpi")},
      {"1000:1000", account(1000, 1000, "mpi", "/home/mpi")},
      {"2000", account(2000, 0, "", "/")},
      {"2000:video", account(2000, 44, "", "/")},
      {"4711", account(12, 13, "4711", "/srv")},
      {"nohome", account(14, 15, "nohome", "/")},
  };
  for (const auto& [user, expected] : cases) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_TRUE(found) << user << ": " << found.error().to_string();
    EXPECT_EQ(*found, expected) << user;
  }
}

TEST(FindAccount, NeedsNoFilesForNumbers) {
  EXPECT_EQ(*find_account("", "", ""), account(0, 0, "", "/"));
  EXPECT_EQ(*find_account("1000:100", "", ""), account(1000, 100, "", "/"));
}

TEST(FindAccount, ListsTheNames) {
  const std::pair<std::string, std::string> cases[] = {
      {"ada", "the image has no user 'ada'\n  the image has root, mpi, 4711, nohome"},
      {"nohom", "did you mean 'nohome'?"},
      {"broken", "the image has no user 'broken'"},
      {"mpi:vidio", "the image has no group 'vidio'\n  did you mean 'video'?"},
      {"mpi:staff", "the image has root, mpi, video"},
      {"-1", "the image has no user '-1'"},
      {"4294967296", "the image has no user '4294967296'"},
  };
  for (const auto& [user, expected] : cases) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_FALSE(found) << user;
    EXPECT_EQ(found.error().code, base::ErrorCode::kInvalid);
    EXPECT_NE(found.error().to_string().find(expected), std::string::npos)
        << user << "\n"
        << found.error().to_string();
  }
  const auto bare = find_account("ada", "", "");
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().advice, "it lists no names: give a number");
}

TEST(FindAccount, RefusesAMalformedUser) {
  for (const char* user : {":", "mpi:", ":video", "a:b:c"}) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_FALSE(found) << user;
    EXPECT_EQ(found.error().what, "'" + std::string(user) + "' is not a valid user");
  }
}

}  // namespace
}  // namespace muster::engine
