// Requests to slurmrestd in each version, and its addresses.
#include "engine/slurm/rest_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/slurm/open_client.h"
#include "engine/slurm/rest_access.h"

namespace muster::engine::slurm {
namespace {

using base::ErrorCode;
using nlohmann::json;

Submission training() {
  return {.name = "train",
          .comment = "muster:c",
          .script = "#!/bin/sh\n",
          .components = {{.tasks = 4,
                          .tasks_per_node = 2,
                          .cpus_per_task = 3,
                          .memory_bytes_per_node = (int64_t{1} << 30) + 1,
                          .gpus_per_node = 2,
                          .gpu_type = "a100"}},
          .partition = "main",
          .excluded_nodes = {"n1", "n2"},
          .time_limit = std::chrono::minutes(90),
          .folder = "/home",
          .environment = {{"A", "b=c"}}};
}

json body_of(const Submission& submission, int version) {
  return json::parse(rest_submit_body(submission, dialect_of(version)));
}

TEST(RestRequest, DescribesAJobInEachVersion) {
  const json v36 = body_of(training(), 36)["job"];
  EXPECT_EQ(v36["standard_out"], "/dev/null");
  const json v38 = body_of(training(), 38);
  EXPECT_EQ(v38["script"], "#!/bin/sh\n");
  EXPECT_EQ(v38["job"], json({{"name", "train"},
                              {"comment", "muster:c"},
                              {"current_working_directory", "/home"},
                              {"standard_output", "/dev/null"},
                              {"standard_error", "/dev/null"},
                              {"open_mode", "append"},
                              {"environment", {{"A", "b=c"}}},
                              {"requeue", true},
                              {"partition", "main"},
                              {"exclude_nodes", "n1,n2"},
                              {"time_limit", 90},
                              {"tasks", 4},
                              {"tasks_per_node", 2},
                              {"nodes", "2-2"},
                              {"cpus_per_task", 3},
                              {"memory_per_node", 1025},
                              {"gpus_per_node", "a100:2"}}));
  const auto set = [](int number) {
    return json{{"set", true}, {"infinite", false}, {"number", number}};
  };
  const json v39 = body_of(training(), 39);
  EXPECT_EQ(v39["script"], "#!/bin/sh\n");
  EXPECT_EQ(v39["job"]["tres_per_node"], "gres:gpu:a100:2");
  for (const int version : {40, 41, 43, 46}) {
    const json newer = body_of(training(), version);
    EXPECT_FALSE(newer.contains("script"));
    EXPECT_EQ(newer["job"], json({{"name", "train"},
                                  {"comment", "muster:c"},
                                  {"script", "#!/bin/sh\n"},
                                  {"current_working_directory", "/home"},
                                  {"standard_output", "/dev/null"},
                                  {"standard_error", "/dev/null"},
                                  {"open_mode", json::array({"APPEND"})},
                                  {"environment", json::array({"A=b=c"})},
                                  {"requeue", true},
                                  {"partition", "main"},
                                  {"excluded_nodes", {"n1", "n2"}},
                                  {"time_limit", set(90)},
                                  {"tasks", 4},
                                  {"tasks_per_node", 2},
                                  {"minimum_nodes", 2},
                                  {"maximum_nodes", 2},
                                  {"cpus_per_task", 3},
                                  {"memory_per_node", set(1025)},
                                  {"tres_per_node", "gres/gpu:a100:2"}}))
        << version;
  }
}

TEST(RestRequest, AHeterogeneousJobIsAListWithOneScript) {
  Submission submission = training();
  submission.components.push_back({.tasks = 1});
  const json old = body_of(submission, 38);
  EXPECT_FALSE(old.contains("job"));
  ASSERT_EQ(old["jobs"].size(), 2U);
  EXPECT_EQ(old["script"], "#!/bin/sh\n");
  const json newer = body_of(submission, 44);
  EXPECT_FALSE(newer.contains("script"));
  EXPECT_EQ(newer["jobs"][0]["script"], "#!/bin/sh\n");
  EXPECT_FALSE(newer["jobs"][1].contains("script"));
  EXPECT_EQ(newer["jobs"][1]["comment"], "muster:c");
}

TEST(RestRequest, WritesTheSmallestNumberOfTasks) {
  Submission submission = training();
  submission.components[0].least_tasks = 2;
  const json old = body_of(submission, 38)["job"];
  EXPECT_EQ(old["nodes"], "1-2");
  EXPECT_EQ(old["tasks"], 2);
  const json newer = body_of(submission, 41)["job"];
  EXPECT_EQ(newer["minimum_nodes"], 1);
  EXPECT_EQ(newer["maximum_nodes"], 2);
}

TEST(RestRequest, ReplacesInvalidUtf8) {
  Submission submission = training();
  submission.name = "a\xff\"\n";
  const json body = json::parse(rest_submit_body(submission, dialect_of(38)));
  EXPECT_EQ(body["job"]["name"], "a\xef\xbf\xbd\"\n");
}

TEST(RestRequest, CancelsManyJobsByTheirIds) {
  EXPECT_EQ(json::parse(rest_cancel_body({7, 8})),
            json({{"jobs", {"7", "8"}}, {"signal", "SIGKILL"}}));
}

// --- addresses ---

TEST(RestEndpoint, IsASocketOrAHost) {
  for (const auto& [text, written] : std::vector<std::pair<std::string, std::string>>{
           {"unix:///run/rest.sock", "unix:///run/rest.sock"},
           {"/run/rest.sock", "unix:///run/rest.sock"},
           {"http://localhost", "http://localhost:6820"},
           {"http://127.0.0.1:80/", "http://127.0.0.1:80"},
           {"http://[::1]:81", "http://[::1]:81"},
           {"https://slurm.example/cluster/", "https://slurm.example:443/cluster"}}) {
    const auto endpoint = parse_rest_endpoint(text);
    ASSERT_TRUE(endpoint) << endpoint.error().to_string();
    EXPECT_EQ(to_string(*endpoint), written);
    EXPECT_EQ(*parse_rest_endpoint(written), *endpoint);
  }
  for (const std::string text :
       {"", "unix://", "unix://run/x", "slurm", "ftp://x", "http://", "http://:80", "http://x:0",
        "http://x:99999", "http://x:y", "http://[::1", "http://[::1]x", "http://[x]:1",
        "http://x/a b", "http://x/a?b", "http://x\r\nHost: y", "http://ann:pass@x:80"}) {
    const auto endpoint = parse_rest_endpoint(text);
    ASSERT_FALSE(endpoint) << text << " is " << to_string(*endpoint);
    EXPECT_EQ(endpoint.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(endpoint.error().what.find("pass"), std::string::npos) << endpoint.error().what;
  }
  EXPECT_FALSE(parse_rest_endpoint("/" + std::string(200, 'x')));
}

TEST(RestEndpoint, IsPrivateOnThisMachineAndWithTls) {
  for (const auto& [text, is] :
       std::vector<std::pair<std::string, bool>>{{"/run/x", true},
                                                 {"https://far.example", true},
                                                 {"http://localhost:1", true},
                                                 {"http://127.0.0.2:1", true},
                                                 {"http://[::1]:1", true},
                                                 {"http://10.0.0.1:1", false},
                                                 {"http://far.example:1", false},
                                                 {"http://localhost.far.example:1", false},
                                                 {"http://127.0.0.1.far.example:1", false},
                                                 {"http://[::2]:1", false}}) {
    EXPECT_EQ(is_private(*parse_rest_endpoint(text)), is) << text;
  }
}

TEST(OpenClient, RefusesAnUnencryptedToken) {
  SlurmEngineOptions options;
  options.rest = "http://far.example:6820";
  const auto far = rest_options(options);
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().code, ErrorCode::kInvalid);
  EXPECT_NE(far.error().advice.find("https"), std::string::npos);
}

TEST(OpenClient, RequestsATokenOfTheConfiguredUser) {
  SlurmEngineOptions options;
  options.rest = "http://127.0.0.1:6820";
  const auto own = rest_options(options);
  ASSERT_TRUE(own) << own.error().to_string();
  EXPECT_EQ(own->user_id, ::geteuid());
  EXPECT_EQ(own->token_command, (std::vector<std::string>{"scontrol", "token", "lifespan=1800"}));
  options.rest_user = "no-such-user-here";
  const auto other = rest_options(options);
  ASSERT_TRUE(other) << other.error().to_string();
  EXPECT_EQ(other->user, "no-such-user-here");
  EXPECT_EQ(other->user_id, std::nullopt);
  EXPECT_EQ(other->token_command.back(), "username=no-such-user-here");
  options.token_command = {"/bin/token"};
  EXPECT_EQ(rest_options(options)->token_command, std::vector<std::string>{"/bin/token"});
}

TEST(OpenClient, SearchesTheUsualSockets) {
  const auto named = usual_rest_sockets([](const std::string& name) {
    return name == "SLURMRESTD" ? std::optional<std::string>("unix:/tmp/x") : std::nullopt;
  });
  EXPECT_EQ(named.front(), "/tmp/x");
  const auto usual = usual_rest_sockets([](const std::string&) { return std::nullopt; });
  EXPECT_EQ(usual.size() + 1, named.size());
}

}  // namespace
}  // namespace muster::engine::slurm
