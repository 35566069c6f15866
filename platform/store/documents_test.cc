#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "store/account_document.h"
#include "store/cbor_value.h"
#include "store/cbor_writer.h"
#include "store/job_document.h"
#include "store/notification_document.h"
#include "store/project_document.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using nlohmann::json;

/// A document of somebody else's making.
std::string document_of(const json& value) {
  std::string document;
  json::to_cbor(value, document);
  return document;
}

TEST(JobDocument, IsReadBackAsItWasWrittenInEveryField) {
  const job::Job full = full_job("j1", "one");
  const job::Job empty{.id = "j2", .spec = {.name = "two"}};

  for (const job::Job& job : {full, empty}) {
    const auto read = from_document(to_document(job));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, job);
  }
}

TEST(JobDocument, RefusesWhatItCannotRead) {
  EXPECT_FALSE(from_document(""));
  EXPECT_FALSE(from_document("\xff\x00\x01"));
  const std::string whole = to_document(full_job("j1", "one"));
  for (size_t length = 0; length < whole.size(); length += 7) {
    EXPECT_FALSE(from_document(std::string_view(whole).substr(0, length)));
  }
}

TEST(JobDocument, OfAnEarlierMusterHasDefaultsForWhatItDidNotKnow) {
  json old = json::from_cbor(to_document(full_job("j1", "one")));
  json& spec = old["spec"];
  for (const char* key :
       {"gpu_share_milli", "gpu_memory_bytes", "cpu_milli", "scheduling", "secrets"}) {
    ASSERT_EQ(spec.erase(key), 1U) << key;
  }
  spec["cpus"] = 2;
  for (const char* key : {"may_start", "restarts", "retries_used", "avoided_nodes", "suspended",
                          "eviction", "owner", "launch", "sealed_seed"}) {
    ASSERT_EQ(old.erase(key), 1U) << key;
  }
  for (json& task : old["tasks"]) {
    ASSERT_EQ(task.erase("devices") + task.erase("gpu_share_milli"), 2U);
  }
  ASSERT_EQ(old["tasks"][0].erase("seat") + old["tasks"][0].erase("left"), 2U);
  const std::string document = document_of(old);

  job::Job expected = full_job("j1", "one");
  const job::Resources& known = expected.spec.resources;
  expected.spec.resources = {
      .gpus = known.gpus, .cpu_milli = 2000, .memory_bytes = known.memory_bytes};
  expected.spec.scheduling = {};
  expected.spec.secrets.clear();
  expected.owner.clear();
  expected.may_start.reset();
  expected.restarts = expected.retries_used = 0;
  expected.avoided_nodes.clear();
  expected.suspended = false;
  expected.eviction.reset();
  expected.launch.reset();
  expected.sealed_seed.clear();
  for (job::Task& task : expected.tasks) {
    task.devices.clear();
    task.gpu_share_milli = 0;
    task.seat = static_cast<int>(&task - expected.tasks.data());
    task.left = false;
  }
  const auto read = from_document(document);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, expected);
}

TEST(JobDocument, OfAnEarlierMusterHasTheDefaultsOfEveryFieldThatItNeedNotHold) {
  json old = json::from_cbor(to_document(full_job("j1", "one")));
  for (const char* key : {"image", "user", "registry", "container", "slurm", "launch",
                          "keeps_entrypoint", "arguments", "worker_command", "leader",
                          "leader_slots", "parameter_servers", "parameter_server", "evaluators",
                          "evaluator", "volumes", "held", "labels", "annotations"}) {
    ASSERT_EQ(old["spec"].erase(key), 1U) << key;
  }

  job::Job expected = full_job("j1", "one");
  job::JobSpec& spec = expected.spec;
  spec.image.clear();
  spec.user.clear();
  spec.registry = {};
  spec.container = {};
  spec.slurm = {};
  spec.launch = job::LaunchBy::kAuto;
  spec.replaces_entrypoint = true;
  spec.arguments = spec.worker_command = {};
  spec.leader = spec.parameter_server = spec.evaluator = {};
  spec.leader_slots = spec.parameter_servers = spec.evaluators = 0;
  spec.volumes.clear();
  spec.held = false;
  spec.labels = spec.annotations = {};
  const auto read = from_document(document_of(old));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, expected);
}

TEST(JobDocument, HoldsNothingOfWhatTheSpecDoesNotSay) {
  const json document = json::from_cbor(to_document({.id = "j", .spec = {.name = "a"}}));

  std::vector<std::string> keys;
  for (const auto& [key, value] : document["spec"].items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"command", "cpu_milli", "environment", "folder",
                                            "gpu_memory_bytes", "gpu_share_milli", "gpus",
                                            "grace_ms", "kind", "memory_bytes", "name", "project",
                                            "sandbox", "scheduling", "secrets", "slots_per_worker",
                                            "start_timeout_ms", "workers"}));
}

TEST(JobDocument, IsReadBackForEachKindOfJobAndVolumeAndEachRole) {
  job::Job job = full_job("j1", "one");
  for (const job::Kind kind :
       {job::Kind::kSingle, job::Kind::kMpi, job::Kind::kGrpc, job::Kind::kTorch}) {
    job.spec.kind = kind;
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
  for (const auto kind : {job::Volume::Kind::kHostPath, job::Volume::Kind::kTree,
                          job::Volume::Kind::kStorage, job::Volume::Kind::kArtifacts}) {
    job.spec.volumes = {{.kind = kind}};
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
  for (const job::Role role :
       {job::Role::kLauncher, job::Role::kWorker, job::Role::kSingle, job::Role::kChief,
        job::Role::kParameterServer, job::Role::kMaster, job::Role::kEvaluator}) {
    job.tasks[0].role = role;
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
}

TEST(JobDocument, OfAnEarlierMusterThatKnewNoResizeLeavesThatToTheCommand) {
  json old = json::from_cbor(to_document(full_job("j1", "one")));
  ASSERT_EQ(old["spec"]["scheduling"].erase("resize"), 1U);

  job::Job expected = full_job("j1", "one");
  expected.spec.scheduling.resize = job::Resize::kAuto;
  EXPECT_EQ(*from_document(document_of(old)), expected);
}

TEST(JobDocument, IsReadBackForEachWayToTakeAChangeOfWorkers) {
  job::Job job = full_job("j1", "one");
  for (const auto resize : {job::Resize::kAuto, job::Resize::kLive, job::Resize::kRestart}) {
    job.spec.scheduling.resize = resize;
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
}

TEST(JobDocument, OfATaskTellsItsSeatWhereThatIsNotItsPlaceInTheList) {
  job::Job job{.id = "j", .spec = {.name = "a", .kind = job::Kind::kTorch, .workers = 2}};
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].left = true;
  job.tasks.push_back(job::next_worker(job, 1));

  const std::string document = to_document(job);

  const json tasks = json::from_cbor(document)["tasks"];
  EXPECT_FALSE(tasks[2].contains("seat"));
  EXPECT_FALSE(tasks[2].contains("left"));
  EXPECT_EQ(tasks[1]["left"], true);
  EXPECT_EQ(tasks[3]["seat"], 1);
  EXPECT_EQ(*from_document(document), job);
}

TEST(JobDocument, IsReadBackForEachWayToLaunchAndToPull) {
  job::Job job = full_job("j1", "one");
  for (const auto launch :
       {job::LaunchBy::kAuto, job::LaunchBy::kSsh, job::LaunchBy::kAgent, job::LaunchBy::kSrun}) {
    job.spec.launch = job.launch->by = launch;
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
  for (const auto pull :
       {job::PullPolicy::kIfMissing, job::PullPolicy::kAlways, job::PullPolicy::kNever}) {
    job.spec.container = {.pull = pull, .shm_bytes = 1};
    EXPECT_EQ(*from_document(to_document(job)), job);
  }
}

TEST(JobDocument, HasWordsThatAreKnown) {
  const json whole = json::from_cbor(to_document(full_job("j1", "one")));
  for (const char* path : {"/spec/volumes/0/kind", "/spec/container/pull", "/spec/launch",
                           "/launch/by", "/spec/scheduling/resize"}) {
    json document = whole;
    ASSERT_TRUE(document.at(json::json_pointer(path)).is_string()) << path;
    document[json::json_pointer(path)] = "another";
    EXPECT_FALSE(from_document(document_of(document))) << path;
  }
}

TEST(ProjectDocument, IsReadBackAsItWasWrittenInEveryField) {
  for (const job::Project& project : {full_project("team-a", 7), job::Project{.name = "b"}}) {
    const auto read = from_project_document(to_project_document(project));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, project);
  }
}

TEST(ProjectDocument, RefusesWhatItCannotRead) {
  const std::string whole = to_project_document(full_project("team-a", 7));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(from_project_document(std::string_view(whole).substr(0, length)));
  }
}

/// Every field comes back, and no document that breaks off is taken for one.
template <class T>
void expect_kept(const T& value, std::string (*write)(const T&),
                 base::Result<T> (*read)(std::string_view)) {
  const std::string whole = write(value);
  const auto again = read(whole);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(*again, value);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(read(std::string_view(whole).substr(0, length)));
  }
}

TEST(AccountDocuments, AreReadBackAsTheyWereWrittenInEveryField) {
  expect_kept(full_user("ada"), to_user_document, from_user_document);
  expect_kept(access::User{.name = "bob"}, to_user_document, from_user_document);
  expect_kept(full_token("t1"), to_token_document, from_token_document);
  expect_kept(access::Token{.id = "t2"}, to_token_document, from_token_document);
  expect_kept(full_secret("lab", "A"), to_secret_document, from_secret_document);
  expect_kept(access::Secret{}, to_secret_document, from_secret_document);
  expect_kept(full_subscription("s1"), to_subscription_document, from_subscription_document);
  expect_kept(job::Subscription{}, to_subscription_document, from_subscription_document);
  expect_kept(full_delivery("d1"), to_delivery_document, from_delivery_document);
  expect_kept(job::Delivery{}, to_delivery_document, from_delivery_document);
  expect_kept(full_record(0), to_audit_document, from_audit_document);
  expect_kept(access::AuditRecord{}, to_audit_document, from_audit_document);
}

TEST(AccountDocuments, HaveARoleAndAKindThatAreKnown) {
  json user = json::from_cbor(to_user_document(full_user("ada")));
  user["server_role"] = "emperor";
  json token = json::from_cbor(to_token_document(full_token("t1")));
  token["kind"] = "golden";

  EXPECT_FALSE(from_user_document(document_of(user)));
  EXPECT_FALSE(from_token_document(document_of(token)));
}

/// The bytes that a writer makes, as they are read by somebody else.
template <class Write>
json written(Write write) {
  std::string bytes;
  CborWriter out(bytes);
  write(out);
  return json::from_cbor(bytes);
}

TEST(CborValue, ReadsWhatOthersWrite) {
  const std::string document = document_of({{"n", -70'000},
                                            {"r", 0.1},
                                            {"t", "é"},
                                            {"b", json::binary({0, 255})},
                                            {"l", {true, nullptr}}});

  const CborValue value = CborValue::parse(document);

  EXPECT_EQ(value.at("n").number(), -70'000);
  EXPECT_EQ(value.at("r").real(), 0.1);
  EXPECT_EQ(value.at("t").text(), "é");
  EXPECT_EQ(value.at("b").bytes(), std::string("\0\xff", 2));
  EXPECT_TRUE(value.at("l").list().at(0).flag());
  EXPECT_TRUE(value.at("l").list().at(1).is_null());
  EXPECT_EQ(value.find("x"), nullptr);
}

TEST(CborValue, SaysWhatIsNotAsExpected) {
  const std::string document = document_of({{"large", int64_t{1} << 40}, {"text", "x"}});
  const CborValue value = CborValue::parse(document);

  EXPECT_THROW(value.at("missing"), std::runtime_error);
  EXPECT_THROW(value.at("large").small_number(), std::runtime_error);
  EXPECT_THROW(value.at("text").bytes(), std::runtime_error);
  EXPECT_THROW(value.number(), std::runtime_error);
}

TEST(CborValue, RefusesWhatIsNoneOrHasNoEnd) {
  const std::string huge_list = "\x9b\xff\xff\xff\xff\xff\xff\xff\xff";
  const std::string huge_number = "\x1b\xff\xff\xff\xff\xff\xff\xff\xff";
  for (const std::string& document :
       {std::string(), std::string("\xff"), std::string("\x9f\xff"), std::string("\x61"),
        std::string("\x00\x00", 2), std::string("\xc0\x00", 2), std::string("\xa1\x00\x00", 3),
        std::string("\xf7"), std::string(100'000, '\x81'), huge_list, huge_number}) {
    EXPECT_THROW(CborValue::parse(document), std::runtime_error);
  }
}

TEST(CborWriter, WritesNumbersOfEverySize) {
  for (const int64_t number :
       {int64_t{0}, int64_t{23}, int64_t{24}, int64_t{255}, int64_t{256}, int64_t{65'535},
        int64_t{65'536}, int64_t{4'294'967'295}, int64_t{4'294'967'296}, INT64_MAX, int64_t{-1},
        int64_t{-24}, int64_t{-25}, int64_t{-65'537}, INT64_MIN}) {
    EXPECT_EQ(written([&](CborWriter& out) { out.number(number); }).get<int64_t>(), number);
  }
}

TEST(CborWriter, WritesWhatOthersRead) {
  const std::string lengthy(70'000, 'x');
  const json value = written([&](CborWriter& out) {
    out.map(5);
    out.key("text").text(lengthy);
    out.key("bytes").bytes(std::string("\0\xff", 2));
    out.key("list").list(3).flag(true).flag(false).null();
    out.key("real").real(-0.1);
    out.key("map").map(0);
  });

  EXPECT_EQ(value["text"].get<std::string>(), lengthy);
  EXPECT_EQ(value["bytes"], json::binary({0, 0xff}));
  EXPECT_EQ(value["list"], json::parse("[true, false, null]"));
  EXPECT_EQ(value["real"].get<double>(), -0.1);
  EXPECT_EQ(value["map"], json::object());
}

}  // namespace
}  // namespace muster::store
