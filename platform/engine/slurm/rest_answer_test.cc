// Answers of slurmrestd. The answers of v0.0.36 to v0.0.38 are from Debian's 22.05.8. The answers
// of v0.0.39 and newer follow the descriptions that Slurm publishes (OpenAPI): no running
// slurmrestd of these versions was available.

#include "engine/slurm/rest_answer.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

using base::ErrorCode;
using base::Time;
using std::chrono::seconds;

const RestUser kRoot{.id = 0, .name = "root"};

/// 22.05.8, v0.0.38: a job of two nodes, without members that are not read.
constexpr const char* kRunning38 = R"json({
  "meta": {"plugin": {"type": "openapi\/v0.0.38", "name": "Slurm OpenAPI v0.0.38"},
           "Slurm": {"version": {"major": 22, "micro": 8, "minor": 5}, "release": "22.05.8"}},
  "errors": [],
  "jobs": [{
    "account": "", "accrue_time": 1795376609, "array_job_id": 0, "array_task_id": null,
    "batch_flag": true, "batch_host": "n1", "billable_tres": 2.0, "cluster": "h2",
    "comment": "muster:0123456789abcdef:j1:1", "contiguous": false, "derived_exit_code": 0,
    "end_time": 1795376910, "exit_code": 0, "flags": ["JOB_CPUS_SET", "JOB_WAS_RUNNING"],
    "gres_detail": ["gpu:1(IDX:0)", "gpu:tesla:1(IDX:0)"], "group_id": 0, "group_name": "root",
    "job_id": 1, "job_resources": {"nodes": "n[1-2]", "allocated_cores": 2, "allocated_hosts": 2,
      "allocated_nodes": [{"sockets": {"7": {"cores": {"0": "allocated"}}}, "nodename": "n1"}]},
    "job_state": "RUNNING", "name": "one", "nodes": "n[1-2]", "nice": null, "tasks": 2,
    "het_job_id": 0, "het_job_id_set": "", "het_job_offset": 0, "partition": "main",
    "memory_per_node": 100, "memory_per_cpu": null, "priority": 1, "profile": null, "qos": "",
    "requeue": true, "restart_cnt": 0, "show_flags": ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"],
    "start_time": 1795376610, "state_description": "", "state_reason": "None",
    "time_limit": 5, "tres_per_node": "gres:gpu:1", "user_id": 0, "user_name": "root"}]})json";

/// The same job as v0.0.40 to v0.0.45 describe it.
constexpr const char* kRunning40 = R"json({
  "jobs": [{
    "account": "", "comment": "muster:0123456789abcdef:j1:1", "job_id": 1,
    "array_task_id": {"set": false, "infinite": false, "number": 0},
    "exit_code": {"status": ["SUCCESS"],
                  "return_code": {"set": true, "infinite": false, "number": 0},
                  "signal": {"id": {"set": false, "infinite": false, "number": 0}, "name": ""}},
    "het_job_id": {"set": true, "infinite": false, "number": 0},
    "het_job_offset": {"set": true, "infinite": false, "number": 0},
    "job_state": ["RUNNING"], "nodes": "n[1-2]", "partition": "main", "qos": "",
    "restart_cnt": 0, "start_time": {"set": true, "infinite": false, "number": 1795376610},
    "state_reason": "None", "user_id": 0, "user_name": "root",
    "time_limit": {"set": true, "infinite": false, "number": 5}}],
  "last_backfill": {"set": true, "infinite": false, "number": 1795376600},
  "last_update": {"set": true, "infinite": false, "number": 1795376611},
  "meta": {"slurm": {"release": "23.11.6", "cluster": "h2"}}, "errors": [], "warnings": []})json";

std::vector<ListedJob> jobs_of(std::string_view body, const RestUser& user = kRoot) {
  const auto read = read_rest_jobs(body, user);
  EXPECT_TRUE(read) << read.error().to_string();
  return read ? read->jobs : std::vector<ListedJob>();
}

/// A listing of one job with these members beside an id.
std::vector<ListedJob> job_with(const std::string& members) {
  return jobs_of(R"({"jobs":[{"job_id":5,"user_id":0,)" + members + "}]}");
}

TEST(RestJson, AJobIsTheSameInEveryVersion) {
  const ListedJob expected{.id = 1,
                           .comment = "muster:0123456789abcdef:j1:1",
                           .state = JobState::kRunning,
                           .state_text = "RUNNING",
                           .nodes = {"n1", "n2"},
                           .partition = "main"};
  EXPECT_EQ(jobs_of(kRunning38), std::vector{expected});
  EXPECT_EQ(jobs_of(kRunning40), std::vector{expected});
  EXPECT_EQ(read_rest_jobs(kRunning38, kRoot)->last_update, 0);
  EXPECT_EQ(read_rest_jobs(kRunning40, kRoot)->last_update, 1795376611);
}

TEST(RestJson, ComponentsOfAHeterogeneousJobAreOneJob) {
  // 22.05.8, v0.0.38, without members that are not read.
  const auto jobs = jobs_of(R"({"jobs":[
    {"job_id": 16, "het_job_id": 15, "het_job_id_set": "15-16", "het_job_offset": 1,
     "nodes": "n2", "job_state": "RUNNING", "state_reason": "None", "exit_code": 0,
     "restart_cnt": 0, "start_time": 1795376921, "comment": "c2", "user_id": 0},
    {"job_id": 15, "het_job_id": 15, "het_job_id_set": "15-16", "het_job_offset": 0,
     "nodes": "n1", "job_state": "RUNNING", "state_reason": "None", "exit_code": 0,
     "restart_cnt": 0, "start_time": 1795376921, "comment": "c2", "user_id": 0},
    {"job_id": 17, "het_job_id": 0, "nodes": "n3", "job_state": "RUNNING", "user_id": 0}]})");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, 15U);
  EXPECT_EQ(jobs[0].nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(jobs[1].id, 17U);
}

TEST(RestJson, JobsOfOtherUsersAreLeftOut) {
  const std::string body = R"({"jobs":[{"job_id":1,"user_id":0,"user_name":"root"},
      {"job_id":2,"user_id":1000,"user_name":"ann"},{"job_id":3,"user_name":"ann"},
      {"job_id":4}]})";
  EXPECT_EQ(jobs_of(body, {.id = 1000, .name = "ann"}).size(), 2U);
  EXPECT_EQ(jobs_of(body, {.id = std::nullopt, .name = "ann"}).size(), 2U);
  EXPECT_EQ(jobs_of(body, {.id = 5, .name = "bob"}).size(), 0U);
}

TEST(RestJson, StatesAreAWordOrWords) {
  struct Case {
    std::string written;
    JobState state;
    std::string text;
  };
  for (const Case& one : std::vector<Case>{
           {R"("PENDING")", JobState::kPending, "PENDING"},
           {R"("COMPLETING")", JobState::kCompleting, "COMPLETING"},
           {R"(["RUNNING","COMPLETING"])", JobState::kCompleting, "RUNNING+COMPLETING"},
           {R"(["RUNNING","CONFIGURING"])", JobState::kConfiguring, "RUNNING+CONFIGURING"},
           {R"(["PENDING","REQUEUED"])", JobState::kPending, "PENDING+REQUEUED"},
           {R"(["CANCELLED"])", JobState::kCancelled, "CANCELLED"},
           {R"("NODE_FAIL")", JobState::kNodeFailed, "NODE_FAIL"},
           {R"(["SOMETHING_NEW"])", JobState::kUnknown, "SOMETHING_NEW"},
           {R"([])", JobState::kUnknown, ""},
           {"7", JobState::kUnknown, ""}}) {
    const auto jobs = job_with(R"("job_state":)" + one.written);
    ASSERT_EQ(jobs.size(), 1U) << one.written;
    EXPECT_EQ(jobs[0].state, one.state) << one.written;
    EXPECT_EQ(jobs[0].state_text, one.text);
  }
}

TEST(RestJson, ReadsEveryFormOfAnExitStatus) {
  struct Case {
    std::string written;
    int code;
    int signal;
  };
  for (const Case& one : std::vector<Case>{
           {"0", 0, 0},
           {"1792", 7, 0},                                            // 22.05.8: exit 7
           {"15", 0, 15},                                             // 22.05.8: SIGTERM
           {"139", 0, 11},                                            // with a core
           {R"({"set":true,"infinite":false,"number":1792})", 7, 0},  // v0.0.39
           {R"({"set":false,"infinite":false,"number":0})", 0, 0},
           {R"({"status":"ERROR","return_code":7})", 7, 0},
           {R"({"return_code":{"set":true,"number":7},"signal":{"signal_id":9}})", 7, 9},
           {R"({"return_code":{"set":true,"number":0},"signal":{"id":{"set":true,"number":15}}})",
            0, 15},
           {"null", 0, 0},
           {R"("odd")", 0, 0},
           {"-1", 0, 0}}) {
    const auto jobs = job_with(R"("exit_code":)" + one.written);
    ASSERT_EQ(jobs.size(), 1U) << one.written;
    EXPECT_EQ(jobs[0].exit_code, one.code) << one.written;
    EXPECT_EQ(jobs[0].exit_signal, one.signal) << one.written;
  }
}

TEST(RestJson, OnlyAWaitingJobHasAnEstimate) {
  const auto waits = job_with(
      R"("job_state":["PENDING"],"state_reason":"Resources",
         "start_time":{"set":true,"infinite":false,"number":1795376610})");
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].reason, "Resources");
  EXPECT_EQ(waits[0].may_start, Time(seconds(1795376610)));
  for (const std::string time :
       {R"(0)", R"({"set":true,"number":0})", R"({"set":false,"number":5})", "null", "-5",
        R"({"set":true,"infinite":true,"number":5})", "18446744073709551615", "1e300"}) {
    const auto unknown = job_with(R"("job_state":"PENDING","start_time":)" + time);
    ASSERT_EQ(unknown.size(), 1U) << time;
    EXPECT_EQ(unknown[0].may_start, std::nullopt) << time;
  }
}

TEST(RestJson, IgnoresEntriesThatAreNotJobs) {
  EXPECT_TRUE(jobs_of(R"({"jobs":[null,7,"x",[],{"user_id":0},{"job_id":0,"user_id":0},
      {"job_id":-1,"user_id":0},{"job_id":"x","user_id":0}]})")
                  .empty());
}

TEST(RestJson, AnInvalidAnswerIsAnError) {
  for (const std::string body : {"", "null", "[]", "{", R"({"jobs":5})", R"({"jobs":{}})", "{}"}) {
    const auto read = read_rest_jobs(body, kRoot);
    ASSERT_FALSE(read) << body;
    EXPECT_EQ(read.error().code, ErrorCode::kInternal);
    EXPECT_FALSE(read_rest_nodes(body));
    EXPECT_FALSE(read_rest_past_jobs(body));
    EXPECT_FALSE(read_rest_paths(body));
  }
  const auto nothing_new = read_rest_jobs("{}", kRoot, true);
  ASSERT_TRUE(nothing_new);
  EXPECT_TRUE(nothing_new->is_empty);
  EXPECT_FALSE(nothing_new->warns);
}

TEST(RestJson, ANodeIsTheSameInEveryVersion) {
  const ListedNode expected{.name = "n2",
                            .address = "127.0.0.1",
                            .state_text = "IDLE+DRAIN",
                            .takes_jobs = false,
                            .reason = "bad disk",
                            .cpus = 8,
                            .memory_bytes = int64_t{8000} << 20,
                            .gpus = 2,
                            .gpu_type = "tesla",
                            .partitions = {"main", "small"},
                            .features = {"fast", "a100"}};
  // 22.05.8, v0.0.38, without members that are not read.
  const auto v38 = read_rest_nodes(R"json({"errors": [], "nodes": [
    {"architecture": "x86_64", "boards": 1, "cpus": 8, "features": "fast,a100",
     "active_features": "fast,a100", "gres": "gpu:tesla:2", "gres_drained": "N\/A",
     "gres_used": "gpu:tesla:0(IDX:N\/A)", "name": "n2", "address": "127.0.0.1",
     "hostname": "vm", "state": "idle", "state_flags": ["DRAIN"], "owner": null,
     "partitions": ["main", "small"], "real_memory": 8000, "reason": "bad disk"}]})json");
  ASSERT_TRUE(v38) << v38.error().to_string();
  EXPECT_EQ(*v38, std::vector{expected});
  // As v0.0.39 and newer describe it.
  const auto v40 = read_rest_nodes(R"json({"nodes": [
    {"cpus": 8, "features": ["fast", "a100"], "gres": "gpu:tesla:2(S:0-1)", "name": "n2",
     "address": "127.0.0.1", "state": ["IDLE", "DRAIN"], "partitions": ["main", "small"],
     "real_memory": 8000, "reason": "bad disk",
     "last_update": {"set": true, "number": 5}}]})json");
  ASSERT_TRUE(v40) << v40.error().to_string();
  EXPECT_EQ(*v40, std::vector{expected});
}

TEST(RestJson, RecognisesANodeThatTakesNoJobs) {
  struct Case {
    std::string written;
    std::string text;
    bool takes_jobs;
  };
  for (const Case& one :
       std::vector<Case>{{R"("state":"idle","state_flags":[])", "IDLE", true},
                         {R"("state":"mixed","state_flags":[])", "MIXED", true},
                         {R"("state":"down","state_flags":["NOT_RESPONDING"])", "DOWN*", false},
                         {R"("state":["IDLE","NOT_RESPONDING"])", "IDLE*", false},
                         {R"("state":["IDLE","DRAIN"])", "IDLE+DRAIN", false},
                         {R"("state":["UNKNOWN"])", "UNKNOWN", false},
                         // v0.0.36 has no flags: only why it is drained.
                         {R"("state":"idle","reason":"")", "IDLE", true},
                         {R"("state":"idle","reason":"bad disk")", "IDLE", false},
                         {R"("state":["IDLE"],"reason":"was down before")", "IDLE", true}}) {
    const auto nodes = read_rest_nodes(R"({"nodes":[{"name":"n1",)" + one.written + "}]}");
    ASSERT_TRUE(nodes) << nodes.error().to_string();
    ASSERT_EQ(nodes->size(), 1U);
    EXPECT_EQ(nodes->front().state_text, one.text) << one.written;
    EXPECT_EQ(nodes->front().takes_jobs, one.takes_jobs) << one.written;
  }
}

TEST(RestJson, FaultsAreReadInAllTheirForms) {
  struct Case {
    std::string errors;
    std::vector<RestFault> faults;
  };
  for (const Case& one : std::vector<Case>{
           // 22.05.8: v0.0.38 and v0.0.37, then v0.0.36, then nodes of all of them.
           {R"([{"description":"unable to kill JobId=999 with signal 9: Invalid job id specified",
                 "error_number":2017,"error":"Invalid job id specified",
                 "source":"slurm_kill_job"}])",
            {{2017, "unable to kill JobId=999 with signal 9: Invalid job id specified"}}},
           {R"([{"error_code":2000,"error":"Invalid partition name specified"}])",
            {{2000, "Invalid partition name specified"}}},
           {R"([{"error":"_handle_job_delete: unable to kill job 999","error_code":0}])",
            {{0, "_handle_job_delete: unable to kill job 999"}}},
           {R"([{"error":"Unspecified error","errno":-1}])", {{-1, "Unspecified error"}}},
           {R"([{"description":"Unknown key \"x\"","source":"hsearch_r"},
                {"error_code":9001,"error":"Failure during parsing"}])",
            {{0, "Unknown key \"x\""}, {9001, "Failure during parsing"}}},
           // As v0.0.40 and newer describe them.
           {R"([{"description":"Batch job submission failed","error_number":2000,
                 "error":"Invalid partition name specified",
                 "source":"slurm_submit_batch_job"}])",
            {{2000, "Invalid partition name specified (Batch job submission failed)"}}},
           {R"([{"error":"line\nbreak"}])", {{0, "line break"}}},
           {R"([])", {}},
           {R"([{}])", {}},
           {R"(null)", {}},
           {R"("x")", {}}}) {
    EXPECT_EQ(read_rest_faults(R"({"errors":)" + one.errors + "}"), one.faults) << one.errors;
  }
  EXPECT_TRUE(read_rest_faults("<html>").empty());
}

TEST(RestJson, ASubmittedJobIsItsId) {
  EXPECT_EQ(*read_rest_submitted(R"({"errors":[],"job_id":17,"step_id":"BATCH"})"), 17U);
  EXPECT_EQ(*read_rest_submitted(R"({"result":{"job_id":17},"job_id":17})"), 17U);
  EXPECT_EQ(*read_rest_submitted(R"({"errors":[{"error":"x"}]})"), 0U);
  EXPECT_FALSE(read_rest_submitted("<html>"));
}

TEST(RestJson, ReadsPathsAndMethods) {
  const auto paths = read_rest_paths(R"json({"openapi":"3.0.3",
    "paths":{"\/slurm\/v0.0.40\/jobs\/":{"get":{"responses":{"200":{"x":1}}},"delete":{}},
             "\/slurm\/v0.0.38\/jobs":{"get":{}},"\/slurmdb\/v0.0.38\/diag":{"get":{}},
             "\/openapi\/v3":{"get":{}},"\/slurm\/next\/x":{"get":{}}},
    "components":{"schemas":{"paths":{}}}})json");
  ASSERT_TRUE(paths) << paths.error().to_string();
  EXPECT_EQ(paths->versions, (std::vector<int>{38, 40}));
  const auto serves = [&](const std::string& what) {
    return std::find(paths->served.begin(), paths->served.end(), what) != paths->served.end();
  };
  EXPECT_TRUE(serves("/slurm/v0.0.40/jobs/ DELETE"));
  EXPECT_TRUE(serves("/slurm/v0.0.40/jobs/ GET"));
  EXPECT_FALSE(serves("/slurm/v0.0.38/jobs DELETE"));
}

TEST(RestJson, APingHasTheVersionAndTheStateOfTheController) {
  // 22.05.8.
  EXPECT_EQ(*read_rest_ping(R"({"meta":{"Slurm":{"release":"22.05.8"}},
      "pings":[{"hostname":"vm","ping":"DOWN","status":-1},
               {"hostname":"vm2","ping":"UP","status":0}]})"),
            (RestPing{.version = "22.05.8", .is_up = true}));
  // As v0.0.40 and newer describe it.
  EXPECT_EQ(*read_rest_ping(R"({"meta":{"slurm":{"release":"24.05.1"}},
      "pings":[{"hostname":"vm","pinged":"DOWN"}]})"),
            (RestPing{.version = "24.05.1", .is_up = false}));
}

}  // namespace
}  // namespace muster::engine::slurm
