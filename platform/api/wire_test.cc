#include "api/wire.h"

#include <gtest/gtest.h>

#include "api/sweep_wire.h"
#include "api/test_values.h"
#include "base/test_faults.h"
#include "job/obstacle.h"

namespace muster::api {
namespace {

using base::ErrorCode;
using base::Texts;
using job::Job;
using job::JobSpec;

constexpr std::string_view kSmallestSpec = R"({"name":"a","command":["b"],"folder":"/c"})";

TEST(SpecWire, ReadsBackEveryField) {
  const auto read = spec_from_json(spec_to_json(full_spec()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_spec());
}

TEST(SpecWire, HasTheDocumentedShape) {
  const JobSpec spec{.name = "a", .command = {"b", "\xFF"}, .folder = "/c"};

  EXPECT_EQ(
      spec_to_json(spec),
      R"({"name":"a","project":"default","kind":"single","command":["b",{"base64":"/w=="}],)"
      R"("workers":0,"slots_per_worker":1,)"
      R"("resources":{"gpus":0,"gpu_share":0,"gpu_memory_bytes":0,"cpus":0,"memory_bytes":0},)"
      R"("scheduling":{"purpose":"train","resize":"auto","node_pools":[],"gpu_models":[],)"
      R"("packing":"auto",)"
      R"("required_topology":"","preferred_topology":"","retries":0,"retry_rules":[]},)"
      R"("environment":{},"secrets":[],"folder":"/c","sandbox":"bubblewrap","start_timeout_ms":30000,"grace_ms":10000})");
}

TEST(SpecWire, UsesDefaultsForAbsentAndNullFields) {
  const JobSpec expected{.name = "a", .command = {"b"}, .folder = "/c"};

  EXPECT_EQ(*spec_from_json(kSmallestSpec), expected);
  EXPECT_EQ(*spec_from_json(R"({"name":"a","command":["b"],"folder":"/c","workers":null})"),
            expected);
}

TEST(SpecWire, ReportsEveryFaultAtOnceByField) {
  const auto read = spec_from_json(R"({
    "name": 7, "kind": "mpii", "command": ["ok", 1, {"base64": "?"}, {"base46": "eA=="}],
    "worker": 2, "workers": 2.5, "slots_per_worker": 3000000000,
    "resources": {"gpus": "two", "memory": 1, "cpus": -1e300},
    "environment": {"A": 1, "B": "fine"},
    "sandbox": [], "grace_ms": 99999999999999999999
  })");

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read.error().what, "the spec has 15 faults");
  EXPECT_EQ(
      faults_of(read),
      (Texts{
          "name must be text, not a whole number",
          "kind 'mpii' is invalid: expected one of single, mpi, grpc, torch; did you mean 'mpi'?",
          "command[1] must be text, not a whole number", "command[2].base64 is not base64",
          "command[3] must be text, not an object",
          "workers must be a whole number, not a number with a fraction",
          "slots_per_worker is out of range; give 1 to 1024",
          "resources.gpus must be a whole number, not text",
          "resources.cpus is out of range; give 0 to 65536",
          "resources.memory is not a field; did you mean 'memory_bytes'?",
          "environment.A must be text, not a whole number", "folder is missing",
          "sandbox must be text, not a list", "grace_ms is out of range; give 0 to 86400000",
          "worker is not a field; did you mean 'workers'?"}));
}

TEST(SpecWire, ReportsFaultsOfValuesBesideFaultsOfForm) {
  const auto read = spec_from_json(R"({
    "name": "Bad Name", "nosuch": 1, "command": "echo hi", "folder": "rel", "grace_ms": -1,
    "resources": {"gpus": -1, "foo": 2}
  })");

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "the spec has 7 faults");
  std::vector<std::string> fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"command", "resources.foo", "nosuch", "name",
                                              "resources.gpus", "folder", "grace_ms"}));
}

TEST(SpecWire, AFieldThatCouldNotBeReadCausesNoFaultOfAnotherField) {
  const std::pair<const char*, Texts> cases[] = {
      {R"("kind": "foo", "workers": 2, "command": [], "leader": {"image": "i"}, "launch": "agent")",
       {"kind"}},
      {R"("kind": "grpc", "workers": 1, "command": 5)", {"command"}},
      {R"("kind": "mpi", "worker": 2, "scheduling": {"min_workers": 1}, "command": ["x"])",
       {"worker"}},
      {R"("imag": "i", "command": [], "user": "ada", "container": {"shm_bytes": 67108864})",
       {"imag"}},
      {R"("command": ["x"], "secrets": [{"name": "A"}, {"name": "A", "file": 3}])",
       {"secrets[1].file"}},
      {R"("command": ["x"], "resources": {"memory": -1})", {"resources.memory"}},
  };
  for (const auto& [keys, expected] : cases) {
    const auto read = spec_from_json(R"({"name": "a", "folder": "/", )" + std::string(keys) + "}");
    ASSERT_FALSE(read) << keys;
    Texts fields;
    for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
    EXPECT_EQ(fields, expected) << keys;
  }
}

TEST(SweepWire, ReportsFaultsOfValuesBesideFaultsOfForm) {
  const auto read = sweep_spec_from_json(R"({
    "job": {"name": "Bad Name", "command": ["x", "{lr}"], "folder": "/", "grace_ms": -1},
    "parameters": {"lr": {"low": 2, "high": 1}}, "max_trials": -2
  })");

  ASSERT_FALSE(read);
  Texts fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields,
            (Texts{"metric", "parameters.lr.high", "max_trials", "job.name", "job.grace_ms"}));
}

TEST(SpecWire, ASecretWithoutADestinationBecomesTheVariableOfItsName) {
  const auto read = spec_from_json(R"({"name":"a","command":["b"],"folder":"/c",
    "secrets": [{"name":"A"},{"name":"B","variable":"X"},{"name":"C","file":"c.pem"}]})");

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->secrets, (std::vector<job::SecretUse>{{.name = "A", .variable = "A"},
                                                        {.name = "B", .variable = "X"},
                                                        {.name = "C", .file = "c.pem"}}));
}

TEST(SpecWire, ReportsFaultsOfSecrets) {
  EXPECT_EQ(faults_of(spec_from_json(R"({"name":"a","command":["b"],"folder":"/c",
              "secrets": [{"variable":"A"},"B",{"name":7,"path":"x"}]})")),
            (Texts{"secrets[0].name is missing", "secrets[1] must be an object, not text",
                   "secrets[2].name must be text, not a whole number",
                   "secrets[2].path is not a field"}));
}

TEST(JobWire, OfAnOlderServerHasNoOwner) {
  const auto read = job_from_json(
      R"({"id":"x","spec":{"name":"a","command":["b"],"folder":"/c"},"phase":"Queued",)"
      R"("submitted":"2026-01-31T12:34:56Z"})");

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->owner, "");
}

TEST(SpecWire, ReportsFaultsOfScheduling) {
  const auto read = spec_from_json(R"({"name":"a","command":["b"],"folder":"/c",
    "resources": {"cpus": 0.0001, "gpu_share": "half"},
    "scheduling": {"purpose": "trian", "preemptible": 1, "resize": "lively", "packing": "tight", "node_pools": "a",
                   "time_limit_ms": "12h", "retry_rules": [{"exit_code": "1"}], "retrys": 1}})");

  const Texts expected = {
      "resources.gpu_share must be a number, not text",
      "resources.cpus has more than three decimals",
      "scheduling.purpose 'trian' is invalid: expected one of train, build, inference; did you "
      "mean 'train'?",
      "scheduling.preemptible must be true or false, not a whole number",
      "scheduling.resize 'lively' is invalid: expected one of auto, live, restart; did you mean "
      "'live'?",
      "scheduling.node_pools must be a list of texts, not text",
      "scheduling.packing 'tight' is invalid: expected one of auto, pack, spread",
      "scheduling.time_limit_ms must be a whole number, not text",
      "scheduling.retry_rules[0].exit_code must be a whole number, not text",
      "scheduling.retry_rules[0].action is missing",
      "scheduling.retrys is not a field; did you mean 'retries'?",
  };
  EXPECT_EQ(faults_of(read), expected);
}

TEST(SpecWire, ReportsValuesThatAreNotObjects) {
  EXPECT_EQ(faults_of(spec_from_json("[]")), Texts{"the spec must be an object, not a list"});
  EXPECT_EQ(faults_of(spec_from_json("null")), Texts{"the spec must be an object, not null"});
  EXPECT_EQ(faults_of(spec_from_json("")), Texts{"the spec is not valid JSON: line 1, byte 1"});
  EXPECT_EQ(faults_of(spec_from_json("{\"name\":\n\"a\",}")),
            Texts{"the spec is not valid JSON: line 2, byte 14"});
  EXPECT_EQ(faults_of(spec_from_json("{\"name\":\"\xFF\"}")),
            Texts{"the spec is not valid JSON: line 1, byte 10"});
  EXPECT_EQ(faults_of(spec_from_json(R"({"workers":1e999})")),
            Texts{"the spec contains a number that is out of range"});
}

TEST(SpecWire, AcceptsIntegersAtBothEndsOfTheirRange) {
  const auto memory_of = [](const std::string& number) {
    return spec_from_json(
        R"({"name":"a","command":["b"],"folder":"/c","resources":{"memory_bytes":)" + number +
        "}}");
  };

  EXPECT_EQ(memory_of("9223372036854775807")->resources.memory_bytes, INT64_MAX);
  EXPECT_EQ(memory_of("-9223372036854775808")->resources.memory_bytes, INT64_MIN);
  EXPECT_FALSE(memory_of("9223372036854775808"));
  EXPECT_FALSE(memory_of("-9223372036854775809"));
  EXPECT_FALSE(memory_of("18446744073709551616"));
}

TEST(SpecWire, OfRepeatedKeysTheLastCounts) {
  EXPECT_EQ(spec_from_json(R"({"name":"a","name":"z","command":["b"],"folder":"/c"})")->name, "z");
}

TEST(SpecWire, SurvivesUnboundedNestingAndLists) {
  const std::string deep(1'000'000, '[');
  std::string wide = R"({"name":"a","folder":"/c","command":[0)";
  for (int i = 0; i < 300'000; ++i) wide += ",0";

  EXPECT_FALSE(spec_from_json(deep));
  EXPECT_FALSE(spec_from_json(deep + std::string(deep.size(), ']')));
  EXPECT_EQ(
      faults_of(spec_from_json(R"({"name":)" + deep + std::string(deep.size(), ']') + "}"))[0],
      "name must be text, not a list");
  EXPECT_EQ(spec_from_json(wide + "]}").error().faults.size(), 100U);  // enough to find the problem
}

TEST(SpecWire, ANameOfAVariableIsAlwaysText) {
  const auto read = spec_from_json(
      spec_to_json({.name = "a", .command = {"b"}, .environment = {{"\xFF", "x"}}, .folder = "/"}));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->environment.contains("\xEF\xBF\xBD"));
}

TEST(JobWire, ReadsBackEveryField) {
  const auto read = job_from_json(job_to_json(full_job()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_job());
}

TEST(JobWire, NeverContainsTheSealedSeed) {
  Job job = full_job();
  job.sealed_seed = "c2VlZA";

  const std::string text = job_to_json(job);

  EXPECT_EQ(text, job_to_json(full_job()));
  EXPECT_EQ(text.find("seed"), std::string::npos);
}

TEST(JobWire, OmitsAbsentFields) {
  Job job{.id = "x", .spec = full_spec(), .submitted = time_at(0)};
  job.spec.scheduling = {};

  const std::string text = job_to_json(job);

  EXPECT_EQ(*job_from_json(text), job);
  for (const char* name : {"started", "ended", "exit_code", "failure", "may_start", "eviction"}) {
    EXPECT_EQ(text.find("\"" + std::string(name) + "\""), std::string::npos) << name;
  }
}

TEST(JobWire, ContainsAnExplanationOfAnExit) {
  Job job = full_job();
  job.tasks[0].exit = job::ExitStatus{.code = 127};

  EXPECT_NE(
      job_to_json(job).find(R"("explanation":"exited with code 127: the command was not found")"),
      std::string::npos);
}

TEST(JobWire, ReadsBackEveryPhase) {
  Job job = full_job();
  for (const auto phase : {job::Phase::kQueued, job::Phase::kStarting, job::Phase::kRunning,
                           job::Phase::kSucceeded, job::Phase::kFailed, job::Phase::kStopped}) {
    job.phase = phase;
    EXPECT_EQ(job_from_json(job_to_json(job))->phase, phase);
  }
}

TEST(JobWire, NamesTheFieldOfAFaultByItsFullPath) {
  const auto read = job_from_json(R"({
    "id": "x", "phase": "Running", "submitted": "yesterday",
    "spec": {"name": "a", "command": ["b"], "folder": "/c", "workers": true},
    "tasks": [{"name": "main", "role": "single", "phase": "Ended", "exit": {"code": "1"}}, 5],
    "events": [{"time": "2026-01-01T00:00:00Z"}]
  })");

  EXPECT_EQ(faults_of(read),
            (Texts{"spec.workers must be a whole number, not true or false",
                   "submitted 'yesterday' is not a time such as 2026-01-31T12:34:56Z",
                   "tasks[0].exit.code must be a whole number, not text",
                   "tasks[1] must be an object, not a whole number", "events[0].text is missing"}));
}

TEST(JobsWire, ReadsBackUnchanged) {
  const std::vector<Job> jobs{full_job(), full_job()};

  EXPECT_EQ(*jobs_from_json(jobs_to_json(jobs)), jobs);
  EXPECT_EQ(jobs_to_json({}), R"({"jobs":[]})");
  EXPECT_TRUE(jobs_from_json(R"({"jobs":[]})")->empty());
  EXPECT_EQ(faults_of(jobs_from_json(R"({"jobs":[{}]})")),
            (Texts{"jobs[0].id is missing", "jobs[0].spec is missing", "jobs[0].phase is missing",
                   "jobs[0].submitted is missing"}));
}

TEST(InfoWire, ReadsBackAndIgnoresUnknownFields) {
  const ServerInfo info{.version = "0.1.0",
                        .pid = 7,
                        .state_folder = "/home/ada/" + kBinary,
                        .engine = "slurm",
                        .address = "lab:7443",
                        .config_changed = true};

  EXPECT_EQ(*info_from_json(info_to_json(info)), info);
  EXPECT_TRUE(info_from_json(R"({"version":"9","pid":1,"state_folder":"/","newer":[]})"));
  EXPECT_EQ(faults_of(info_from_json("{}")), (Texts{"version is missing", "pid is missing"}));
}

}  // namespace
namespace {

using base::Error;

TEST(Problem, HasTheShapeOfRfc9457) {
  const Error error{.code = ErrorCode::kInvalid,
                    .what = "the spec has 1 fault",
                    .advice = "mend it",
                    .faults = {{.field = "workers", .what = "is \"odd\"", .line = 3}}};

  EXPECT_EQ(problem_to_json(error),
            R"({"type":"about:blank","title":"Bad Request","status":400,)"
            R"("detail":"the spec has 1 fault","code":"invalid","advice":"mend it",)"
            R"("faults":[{"field":"workers","what":"is \"odd\"","line":3}]})");
}

TEST(Problem, ReadsBackAsTheSameError) {
  for (const auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                          ErrorCode::kRefused, ErrorCode::kExhausted, ErrorCode::kUnavailable,
                          ErrorCode::kTimeout, ErrorCode::kInternal}) {
    const Error error{
        .code = code,
        .what = "what",
        .advice = "advice",
        .faults = {{.field = "a", .what = "b", .line = 0}, {.field = "c", .what = "d", .line = 7}}};

    const Error back = problem_from_json(http_status_of(code), problem_to_json(error));

    EXPECT_EQ(back.code, code);
    EXPECT_EQ(back.to_string(), error.to_string());
  }
}

TEST(Problem, EachCodeHasAStatusThatMapsBackToIt) {
  for (const auto code : {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kConflict,
                          ErrorCode::kRefused, ErrorCode::kExhausted, ErrorCode::kUnavailable,
                          ErrorCode::kTimeout, ErrorCode::kInternal}) {
    EXPECT_EQ(problem_from_json(http_status_of(code), "").code, code);
  }
}

TEST(Problem, AnAnswerThatIsNotAProblemBecomesAnErrorOfItsStatus) {
  for (const char* text : {"", "<html>", "[]", "{}", R"({"detail":5})"}) {
    const Error error = problem_from_json(503, text);

    EXPECT_EQ(error.code, ErrorCode::kUnavailable) << text;
    EXPECT_EQ(error.what, "the server answered 503 Service Unavailable") << text;
  }
}

TEST(Problem, NamesWhatStandsInTheWay) {
  for (const auto& [kind, text] : job::kObstacleTexts) {
    const Error error{.code = ErrorCode::kConflict, .what = "what", .detail = job::obstacle(kind)};
    const std::string wire = problem_to_json(error);

    EXPECT_NE(wire.find("\"cause\":\"" + std::string(text) + "\""), std::string::npos) << wire;
    const Error back = problem_from_json(409, wire);
    const auto* const obstacle = base::detail_of<job::Obstacle>(back);
    ASSERT_NE(obstacle, nullptr) << text;
    EXPECT_EQ(obstacle->kind, kind);
  }
  EXPECT_EQ(problem_from_json(409, R"({"detail":"taken","cause":"newer"})").detail, nullptr);
}

TEST(Problem, MayHaveUnknownMembers) {
  const Error error = problem_from_json(
      409,
      R"({"type":"x","title":"y","status":409,"detail":"taken","instance":"/a","code":"new"})");

  EXPECT_EQ(error.what, "taken");
  EXPECT_EQ(error.code, ErrorCode::kInternal);
}

TEST(Problem, IsJsonWhateverTheSentencesContain) {
  const Error error{.code = ErrorCode::kNotFound, .what = "no file '\xFF\n'"};

  EXPECT_EQ(problem_from_json(404, problem_to_json(error)).what, "no file '\xEF\xBF\xBD\n'");
}

}  // namespace
namespace {

TEST(EventWire, HasTheDocumentedShapeAndReadsBack) {
  const JobEvent event{.time = time_at(1'767'225'600'123'456'789),
                       .job = "train",
                       .project = "team",
                       .job_id = "j1",
                       .what = job::Remark{"started on n1"}};

  EXPECT_EQ(job_event_to_json(event),
            R"({"time":"2026-01-01T00:00:00.123456789Z","job":"train","project":"team",)"
            R"("job_id":"j1","text":"started on n1",)"
            R"("fact":{"kind":"remark","text":"started on n1"}})");
  EXPECT_EQ(*job_event_from_json(job_event_to_json(event)), event);
}

TEST(EventWire, IdentifiesARemovedJob) {
  const RemovedJob job{.id = "j1", .name = "train", .project = "team"};

  EXPECT_EQ(removed_job_to_json(job), R"({"id":"j1","name":"train","project":"team"})");
  EXPECT_EQ(*removed_job_from_json(removed_job_to_json(job)), job);
}

TEST(EventWire, ReportsMissingFields) {
  EXPECT_EQ(job_event_from_json("{}").error().faults.size(), 3U);
  EXPECT_EQ(removed_job_from_json("{}").error().faults.size(), 3U);
}

}  // namespace
namespace {

TEST(ForecastWire, ReadsBackEveryField) {
  const auto read = forecast_from_json(forecast_to_json(full_forecast()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_forecast());
}

TEST(ForecastWire, ReportsMissingFields) {
  const auto read = forecast_from_json(R"({"placing":[{}]})");

  ASSERT_FALSE(read);
  std::vector<std::string> fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"starts_now", "placing[0].task", "placing[0].node",
                                              "before", "after"}));
}

TEST(ExplanationWire, ReadsBackEveryField) {
  const auto read = explanation_from_json(explanation_to_json(full_explanation()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_explanation());
}

TEST(ExplanationWire, HasTheDocumentedShape) {
  const job::Explanation explanation{
      .name = "dist",
      .constraint = "room",
      .reason = {job::Remark{"needs 2 GPUs; 1 is free"}, {job::Remark{"'prep' holds 1 GPU of n1"}}},
      .position = 1};

  EXPECT_EQ(explanation_to_json(explanation),
            R"({"name":"dist","phase":"Queued","constraint":"room",)"
            R"("reason":"needs 2 GPUs; 1 is free","details":["'prep' holds 1 GPU of n1"],)"
            R"("reason_facts":{"kind":"remark","text":"needs 2 GPUs; 1 is free",)"
            R"("details":[{"kind":"remark","text":"'prep' holds 1 GPU of n1"}]},)"
            R"("position":1,"events":[]})");
}

}  // namespace
namespace {

TEST(LabelWire, ReadsBackUnchanged) {
  const LabelChanges changes{
      {"a", "b"}, {"gone", std::nullopt}, {"tag", ""}, {"Zoë 漢字", "\"quoted\""}};

  const std::string text = label_changes_to_json(changes);

  EXPECT_EQ(text, R"({"labels":{"Zoë 漢字":"\"quoted\"","a":"b","gone":null,"tag":""}})");
  const auto read = label_changes_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, changes);
}

TEST(LabelWire, OfNoChangesIsEmpty) {
  EXPECT_TRUE(label_changes_from_json(label_changes_to_json({}))->empty());
}

TEST(LabelWire, ReportsEveryFault) {
  EXPECT_EQ(faults_of(label_changes_from_json("{}")), Texts{"labels is missing"});
  EXPECT_EQ(faults_of(label_changes_from_json(R"({"labels":["a"]})")),
            Texts{"labels must be an object, not a list"});
  EXPECT_EQ(
      faults_of(label_changes_from_json(R"({"labels":{"a":1,"b=c":"","d":"\n"},"label":[]})")),
      (Texts{"labels.a must be text, not a whole number",
             "label is not a field; did you mean 'labels'?",
             "labels.b=c is not a label name: use 1 to 128 bytes of text without '='",
             "labels.d is not text of at most 256 bytes without control characters"}));
}

}  // namespace
}  // namespace muster::api
