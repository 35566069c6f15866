#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "store/records.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using nlohmann::json;

/// A document made by another program.
std::string cbor_of(const json& value) {
  std::string document;
  json::to_cbor(value, document);
  return document;
}

/// Every field is read back, and a truncated document is refused.
template <class T>
void expect_kept(const T& value) {
  const std::string whole = to_document(value);
  const auto again = from_document<T>(whole);
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(*again, value);
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 200) {
    EXPECT_FALSE(from_document<T>(std::string_view(whole).substr(0, length)));
  }
}

/// A value with all of its fields, as another program reads its document.
json full_job_document() {
  return json::from_cbor(to_document(full_job("j1", "one")));
}

TEST(Documents, AreTheJsonOfTheTable) {
  const job::Job job = full_job("j1", "one");
  EXPECT_EQ(full_job_document(), json::parse(record::to_json(job, record::Form::kStore)));
}

std::string fault_of_job(const json& document) {
  const auto read = from_document<job::Job>(cbor_of(document));
  return read ? "" : read.error().what;
}

TEST(Documents, ReadBackEveryField) {
  expect_kept(full_job("j1", "one"));
  expect_kept(job::Job{.id = "j2", .spec = {.name = "two"}});
  expect_kept(full_project("team-a", 7));
  expect_kept(job::Project{.name = "b"});
  expect_kept(full_user("ada"));
  expect_kept(access::User{.name = "bob"});
  expect_kept(full_token("t1"));
  expect_kept(access::Token{.id = "t2"});
  expect_kept(full_secret("lab", "A"));
  expect_kept(access::Secret{});
  expect_kept(full_subscription("s1"));
  expect_kept(job::Subscription{});
  expect_kept(full_delivery("d1"));
  expect_kept(job::Delivery{.happening = job::Happening::kStarted});
  expect_kept(full_record(0));
  expect_kept(access::AuditRecord{});
}

TEST(Documents, DistinguishAnEmptyShareFromNone) {
  job::Project project{.name = "p"};
  project.quota.deserved.gpu_milli.reset();
  project.quota.limit.gpu_milli = 0;
  project.pools["a100"].deserved = {.gpu_milli = {}, .cpu_milli = 0, .memory_bytes = {}};

  expect_kept(project);
}

TEST(Documents, KeepBytesThatAreNotUtf8) {
  job::Job job{.id = "j",
               .spec = {.name = "a", .command = {std::string("\xff\x00\x01", 3), "\xc3"}}};
  job.spec.environment["A"] = "\x80";
  access::Token token{.id = "t", .hash = std::string(32, '\xfe')};

  expect_kept(job);
  expect_kept(token);
}

TEST(Documents, RefuseTextsThatAreNotUtf8) {
  json name = full_job_document();
  name["spec"]["environment"]["LAN\xe6"] = "C";
  json text = full_job_document();
  text["failure"]["task"] = "ma\x97\x91";

  EXPECT_NE(fault_of_job(name), "");
  EXPECT_NE(fault_of_job(text), "");
}

TEST(JobDocument, OmitsFieldsThatTheSpecDoesNotSet) {
  const json document = json::from_cbor(to_document(job::Job{.id = "j", .spec = {.name = "a"}}));

  EXPECT_EQ(document["spec"], json({{"name", "a"}, {"command", json::array()}, {"folder", ""}}));
}

TEST(JobDocument, OmitsFieldsThatAreOnlySent) {
  job::Job job{.id = "j", .spec = {.name = "a"}, .sealed_seed = "s"};
  job.progress = job::Progress{.unit = "step", .done = 1, .total = 2};
  job.kept_until = base::Time();
  job.tasks = {{.name = "main", .exit = job::ExitStatus{.code = 3}}};

  const json document = json::from_cbor(to_document(job));

  EXPECT_FALSE(document.contains("progress"));
  EXPECT_FALSE(document.contains("kept_until"));
  EXPECT_FALSE(document["tasks"][0]["exit"].contains("explanation"));
  EXPECT_EQ(document["sealed_seed"], "s");
}

TEST(JobDocument, NamesEveryMissingUnknownAndInvalidField) {
  json document = full_job_document();
  document.erase("phase");
  document["spec"]["wrokers"] = 3;
  document["tasks"][0]["seat"] = "first";

  const std::string fault = fault_of_job(document);

  for (const char* part : {"the document of type Job is not valid", "phase is missing",
                           "spec.wrokers is not a field; did you mean 'workers'?",
                           "tasks[0].seat must be a whole number, not text"}) {
    EXPECT_NE(fault.find(part), std::string::npos) << part << " in: " << fault;
  }
}

TEST(JobDocument, RefusesInvalidCbor) {
  for (const std::string_view text : {"", "\xff\x01", "{}", "\xa0\xa0", "\x9f"}) {
    EXPECT_FALSE(from_document<job::Job>(text)) << text;
  }
}

TEST(JobDocument, ReadsBackEachWordOfEachEnumeration) {
  job::Job job = full_job("j1", "one");
  const auto each = [&](auto& member) {
    for (const auto& [value, name] : words_of(&std::as_const(member)).values) {
      member = value;
      const auto read = from_document<job::Job>(to_document(job));
      ASSERT_TRUE(read) << name << ": " << read.error().what;
      EXPECT_EQ(*read, job) << name;
    }
  };
  each(job.spec.kind);
  each(job.spec.launch);
  each(job.spec.sandbox);
  each(job.spec.container.pull);
  each(job.spec.scheduling.purpose);
  each(job.spec.scheduling.resize);
  each(job.spec.scheduling.packing);
  each(job.spec.volumes.at(0).kind);
  each(job.launch->by);
  each(job.phase);
  each(job.tasks.at(0).role);
  each(job.tasks.at(0).phase);
}

TEST(JobDocument, RefusesUnknownWords) {
  for (const char* path : {"/spec/volumes/0/kind", "/spec/container/pull", "/spec/launch",
                           "/launch/by", "/spec/scheduling/resize", "/tasks/0/role"}) {
    json document = full_job_document();
    ASSERT_TRUE(document.at(json::json_pointer(path)).is_string()) << path;
    document[json::json_pointer(path)] = "another";
    EXPECT_NE(fault_of_job(document).find("'another' is invalid"), std::string::npos) << path;
  }
}

TEST(AccountDocuments, RefuseAnUnknownRoleOrKind) {
  json user = json::from_cbor(to_document(full_user("ada")));
  user["server_role"] = "emperor";
  json token = json::from_cbor(to_document(full_token("t1")));
  token["kind"] = "golden";

  EXPECT_FALSE(from_document<access::User>(cbor_of(user)));
  EXPECT_FALSE(from_document<access::Token>(cbor_of(token)));
}

}  // namespace
}  // namespace muster::store
