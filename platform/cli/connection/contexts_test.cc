#include "cli/connection/contexts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/test_folder.h"

namespace muster::cli {

namespace {

Contexts two() {
  return {.in_use = "lab",
          .known = {{.name = "lab",
                     .server = "https://lab.example.org:7443",
                     .fingerprint = std::string(64, 'a'),
                     .user = "ada",
                     .token = "muster_secret",
                     .expires = base::FakeClock().now(),
                     .project = "team-a"},
                    {.name = "cloud", .server = "https://10.0.0.7:443", .ca_file = "/etc/ca.pem"}}};
}

TEST(Contexts, AreReadBackFromTheirFileUnchanged) {
  const auto read = contexts_from_json(contexts_to_json(two()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, two());
}

TEST(Contexts, OfAnEmptyFileAreTheLocalContext) {
  const auto read = contexts_from_json(R"({"version": 1})");

  ASSERT_TRUE(read);
  EXPECT_EQ(read->in_use, "local");
  EXPECT_EQ(read->names(), std::vector<std::string>{"local"});
}

TEST(Contexts, OfADamagedFileAreAnErrorWithThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it is not a JSON object"},
      {"[]", "it is not a JSON object"},
      {R"({"version": 1, "contexts": [)", "it is not a JSON object"},
      {R"({})", "its 'version' is not 1"},
      {R"({"version": 2})", "its 'version' is not 1"},
      {R"({"version": 1, "in_use": 7})", "it.in_use is not a text"},
      {R"({"version": 1, "contexts": {}})", "'contexts' is not a list"},
      {R"({"version": 1, "contexts": [7]})", "contexts[0] is not an object"},
      {R"({"version": 1, "contexts": [{"name": "a"}]})", "contexts[0].server is not an address"},
      {R"({"version": 1, "contexts": [{"name": "local", "server": "https://a"}]})",
       "contexts[0].name is not a valid name"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a", "token": 1}]})",
       "contexts[0].token is not a text"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a", "expires": "soon"}]})",
       "contexts[0].expires is not a time"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a"},
                                      {"name": "a", "server": "https://b"}]})",
       "contexts[1].name is used twice"},
  };
  for (const auto& [text, where] : cases) {
    const auto read = contexts_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().what, where) << text;
  }
}

TEST(ContextOf, FindsTheLocalContextAndThoseOfTheFile) {
  EXPECT_TRUE(context_of(two(), "local")->is_local());
  EXPECT_EQ(context_of(two(), "lab")->user, "ada");

  const auto missing = context_of(two(), "lap");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().what, "there is no context 'lap'; did you mean 'lab'?");
}

TEST(ContextName, NeedsNoQuotesInAShell) {
  for (const char* good : {"lab", "lab.example.org", "a_b-C9", "127.0.0.1-40000"}) {
    EXPECT_TRUE(check_context_name(good)) << good;
  }
  for (const char* bad : {"", "-lab", "a b", "a/b", "local", "environment", "\xc3\xa4"}) {
    EXPECT_FALSE(check_context_name(bad)) << bad;
  }
  EXPECT_FALSE(check_context_name(std::string(65, 'a')));
}

TEST(ContextName, IsTheHostByDefault) {
  EXPECT_EQ(context_name_for("lab.example.org", 7443), "lab.example.org");
  EXPECT_EQ(context_name_for("10.0.0.7", 443), "10.0.0.7-443");
  EXPECT_EQ(context_name_for("local", 7443), "at-local");
  EXPECT_EQ(context_name_for("::1", 7443), "at---1");
}

}  // namespace

namespace {

TEST(InheritedEnvironment, ContainsTheVariablesOfProgramsAndNoSecret) {
  const Environment all{{"PATH", "p"},       {"LC_ALL", "C"},          {"CONDA_PREFIX", "c"},
                        {"NCCL_DEBUG", "n"}, {"AWS_SECRET", "s"},      {"PATHOLOGY", "x"},
                        {"LC", "x"},         {"OMP_NUM_THREADS", "4"}, {"SSH_AUTH_SOCK", "s"}};

  EXPECT_EQ(inherited_environment(all), (Environment{{"CONDA_PREFIX", "c"},
                                                     {"LC_ALL", "C"},
                                                     {"NCCL_DEBUG", "n"},
                                                     {"OMP_NUM_THREADS", "4"},
                                                     {"PATH", "p"}}));
}

}  // namespace

namespace {

class ContextsFile : public testing::Test {
 protected:
  static Result<void> add(const std::filesystem::path& folder, const std::string& name) {
    return change_contexts(folder, [&](Contexts& contexts) -> Result<void> {
      contexts.known.push_back({.name = name, .server = "https://lab:7443", .token = "sesame"});
      contexts.in_use = name;
      return {};
    });
  }

  void write(const std::string& text, mode_t mode = 0600) const {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "contexts.json") << text;
    ::chmod((folder_ / "contexts.json").c_str(), mode);
  }

  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "contexts.json").rdbuf();
    return text.str();
  }

  mode_t mode(const char* file) const {
    struct stat status{};
    return ::stat((folder_ / file).c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  const base::TestFolder outer_;
  const std::filesystem::path folder_ = outer_ / "config";
};

TEST_F(ContextsFile, MayBeMissing) {
  EXPECT_EQ(*read_contexts(folder_), Contexts{});
  EXPECT_EQ(*read_contexts(""), Contexts{});
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(ContextsFile, IsReadableOnlyByItsUser) {
  ASSERT_TRUE(add(folder_, "lab"));

  EXPECT_EQ(mode("contexts.json"), 0600U);
  EXPECT_EQ(mode(""), 0700U);
  EXPECT_EQ(read_contexts(folder_)->in_use, "lab");
}

TEST_F(ContextsFile, IsRefusedWithAdviceIfOthersMayReadIt) {
  ASSERT_TRUE(add(folder_, "lab"));
  for (const mode_t open : {0640U, 0604U, 0660U, 0644U}) {
    ::chmod((folder_ / "contexts.json").c_str(), open);

    const auto read = read_contexts(folder_);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, base::ErrorCode::kRefused);
    EXPECT_NE(read.error().advice.find("chmod 600 "), std::string::npos) << read.error().advice;
    EXPECT_FALSE(add(folder_, "other"));
  }
  ::chmod((folder_ / "contexts.json").c_str(), 0600);
  EXPECT_EQ(read_contexts(folder_)->names(), (std::vector<std::string>{"local", "lab"}));
}

TEST_F(ContextsFile, IsReportedAndNotChangedIfItIsDamaged) {
  write("{\"token\": \"sesame\", ");

  const auto read = read_contexts(folder_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kInvalid);
  EXPECT_NE(read.error().what.find("contexts.json' is damaged: "), std::string::npos);
  EXPECT_EQ(read.error().to_string().find("sesame"), std::string::npos);
  EXPECT_FALSE(add(folder_, "lab"));
  EXPECT_EQ(content(), "{\"token\": \"sesame\", ");
}

TEST_F(ContextsFile, IsNotChangedIfTheChangeFails) {
  ASSERT_TRUE(add(folder_, "lab"));
  const std::string before = content();

  const auto changed = change_contexts(folder_, [](Contexts& contexts) -> Result<void> {
    contexts.known.clear();
    return base::Error{.what = "no"};
  });

  EXPECT_FALSE(changed);
  EXPECT_EQ(content(), before);
}

TEST_F(ContextsFile, LosesNoConcurrentChange) {
  constexpr int kWriters = 8;
  constexpr int kEach = 10;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "c" + std::to_string(writer) + "-" + std::to_string(i);
        EXPECT_TRUE(add(folder_, name));
        EXPECT_TRUE(read_contexts(folder_));  // never a part of the file
      }
    });
  }
  for (std::thread& writer : writers) writer.join();

  const auto contexts = read_contexts(folder_);
  ASSERT_TRUE(contexts);
  EXPECT_EQ(contexts->known.size(), static_cast<size_t>(kWriters * kEach));
  EXPECT_NE(contexts->find(contexts->in_use), nullptr);
}

TEST_F(ContextsFile, FallsBackToTheLocalContextIfTheCurrentOneIsForgotten) {
  ASSERT_TRUE(add(folder_, "lab"));

  EXPECT_EQ(forget_context(folder_, "lap").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(forget_context(folder_, "local").error().code, base::ErrorCode::kInvalid);
  ASSERT_TRUE(forget_context(folder_, "lab"));

  EXPECT_EQ(*read_contexts(folder_), Contexts{});
  EXPECT_EQ(content().find("sesame"), std::string::npos);
}

}  // namespace

namespace {

Result<Contexts> lab_in_use() {
  return Contexts{.in_use = "lab",
                  .known = {{.name = "lab", .server = "https://lab:7443"},
                            {.name = "cloud", .server = "https://cloud:7443"}}};
}

Result<Contexts> damaged() {
  return base::Error{.code = base::ErrorCode::kInvalid, .what = "damaged"};
}

const Environment kFromEnvironment{{"MUSTER_SERVER", "https://ci.example.org"},
                                   {"MUSTER_TOKEN", "t"},
                                   {"MUSTER_CONTEXT", "cloud"}};

TEST(ChosenContext, IsTheFirstOneGiven) {
  struct Case {
    std::string flag;
    Environment environment;
    std::string name;
    std::string server;
  };
  const Case cases[] = {
      {"", {}, "lab", "https://lab:7443"},
      {"", {{"MUSTER_CONTEXT", "cloud"}}, "cloud", "https://cloud:7443"},
      {"", {{"MUSTER_CONTEXT", ""}}, "lab", "https://lab:7443"},
      {"", {{"MUSTER_CONTEXT", "local"}}, "local", ""},
      {"", kFromEnvironment, "environment", "https://ci.example.org:7443"},
      {"lab", kFromEnvironment, "lab", "https://lab:7443"},
      {"local", kFromEnvironment, "local", ""},
  };
  for (const Case& each : cases) {
    const auto chosen = choose_context(each.flag, each.environment, lab_in_use);
    ASSERT_TRUE(chosen) << chosen.error().to_string();
    EXPECT_EQ(chosen->name, each.name);
    EXPECT_EQ(chosen->server, each.server);
  }
}

TEST(ChosenContext, NeedsNoFileIfTheEnvironmentNamesAServer) {
  Environment environment = kFromEnvironment;
  environment["MUSTER_FINGERPRINT"] =
      "AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:"
      "AA:AA";

  const auto chosen = choose_context("", environment, damaged);

  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->token, "t");
  EXPECT_EQ(chosen->fingerprint, std::string(64, 'a'));
  EXPECT_TRUE(choose_context("local", {}, damaged));
  EXPECT_FALSE(choose_context("", {}, damaged));
}

TEST(ChosenContext, ReportsTheSourceOfAnUnknownName) {
  const std::pair<Environment, const char*> cases[] = {
      {{{"MUSTER_CONTEXT", "lap"}},
       "MUSTER_CONTEXT: there is no context 'lap'; did you mean 'lab'?"},
      {{{"MUSTER_SERVER", "https://ci"}}, "MUSTER_SERVER is set, but MUSTER_TOKEN is not"},
      {{{"MUSTER_SERVER", "http://ci"}, {"MUSTER_TOKEN", "t"}},
       "MUSTER_SERVER: 'http://ci' is not the address of a server: it does not begin with "
       "https://"},
  };
  for (const auto& [environment, what] : cases) {
    const auto chosen = choose_context("", environment, lab_in_use);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().what, what);
  }
  const auto gone = choose_context(
      "", {}, []() -> Result<Contexts> { return Contexts{.in_use = "gone", .known = {}}; });
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().what, "'muster context use': there is no context 'gone'");
}

TEST(OverridingVariable, IsTheVariableThatTakesPrecedence) {
  EXPECT_EQ(overriding_variable({}), "");
  EXPECT_EQ(overriding_variable({{"MUSTER_CONTEXT", "lab"}}), "MUSTER_CONTEXT");
  EXPECT_EQ(overriding_variable(kFromEnvironment), "MUSTER_SERVER");
}

}  // namespace

}  // namespace muster::cli
