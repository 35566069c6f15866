// Values for tests in which no field has its default, so that a forgotten field is noticed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "job/notification.h"
#include "job/project.h"
#include "job/test_specs.h"
#include "store/store.h"

namespace muster::store {

/// Names of nodes, or ids of jobs.
using Names = std::vector<std::string>;

inline constexpr base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

/// With negative numbers and numbers of several bytes, which documents encode in another way.
inline job::Job full_job(std::string id, std::string name) {
  job::Job job = job::full_job();
  job.id = std::move(id);
  job.spec.name = std::move(name);
  job.owner = "ada";
  job.spec.secrets = {{.name = "TOKEN", .variable = "HF_TOKEN", .file = ""},
                      {.name = "KEY", .variable = "", .file = "keys/id"}};
  job.tasks[0].devices = {0, 300};
  job.tasks[0].exit->code = -1;
  job.sealed_seed = std::string("\0seed\xFF", 6);
  return job;
}

inline Object full_object(std::string kind, std::string id, std::string name) {
  return {.kind = std::move(kind),
          .id = std::move(id),
          .project = "vision",
          .name = std::move(name),
          .document = std::string("\0document of an object\xFF", 23)};
}

inline job::Project full_project(std::string name, uint64_t sequence) {
  return {.name = std::move(name),
          .parent = "lab",
          .quota = {.deserved = {.gpu_milli = 2500, .cpu_milli = 0, .memory_bytes = 1},
                    .limit = {.gpu_milli = int64_t{1} << 40},
                    .weight = 0.1},
          .pools = {{"a100", {.deserved = {}, .limit = {.gpu_milli = 1}, .weight = 0}}},
          .priority = 200,
          .reclaim_min_runtime = std::chrono::milliseconds(1),
          .preempt_min_runtime = std::chrono::milliseconds(2),
          .takes_the_rest = true,
          .sequence = sequence,
          .created = kTime};
}

inline access::User full_user(std::string name) {
  return {.name = std::move(name),
          .server_role = access::Role::kViewer,
          .projects = {{"lab", access::Role::kAdmin}, {"vision", access::Role::kMember}},
          .disabled = true,
          .created = kTime};
}

inline access::Token full_token(std::string id) {
  return {.id = std::move(id),
          .user = "ada",
          .kind = access::TokenKind::kSession,
          .description = "of the laptop " + job::kBinary,
          .ceiling = access::Role::kMember,
          .projects = {"vision"},
          .created = kTime,
          .expires = kTime + std::chrono::hours(1),
          .last_used = kTime + std::chrono::minutes(1),
          .last_address = "10.0.0.7",
          .hash = std::string("\0\xFF", 2) + std::string(30, 'h')};
}

inline access::Secret full_secret(std::string project, std::string name) {
  return {.project = std::move(project),
          .name = std::move(name),
          .sealed = std::string("\0sealed\xFF", 8),
          .created = kTime,
          .changed = kTime + std::chrono::seconds(1),
          .changed_by = "ada"};
}

inline job::Subscription full_subscription(std::string id) {
  return {.id = std::move(id),
          .project = "lab",
          .url = "https://hooks.example.com/\xFF",
          .on = {job::Happening::kFailed, job::Happening::kRequeued},
          .job = "train-*",
          .labels = {{"team", "\xFF"}, {"x", ""}},
          .with_lines = true,
          .sealed_key = std::string("\0sealed\xFF", 8),
          .created = kTime,
          .created_by = "ada",
          .gone = kTime + std::chrono::hours(1)};
}

inline job::Delivery full_delivery(std::string id) {
  return {.id = std::move(id),
          .subscription = "s1",
          .project = "lab",
          .happening = job::Happening::kStopped,
          .job = "train-7",
          .body = "{\"id\":\"d\"}",
          .created = kTime,
          .attempts = 3,
          .next = kTime + std::chrono::minutes(1),
          .fault = "answered 500: \xFF",
          .dead = kTime + std::chrono::hours(24)};
}

/// `number`: the number that the store will assign.
inline access::AuditRecord full_record(uint64_t number) {
  return {.number = number,
          .time = kTime + std::chrono::seconds(number),
          .actor = {.user = "ada", .address = "10.0.0.7", .token = "abc", .request = "r1"},
          .action = "project.set",
          .target = "vision",
          .project = "lab",
          .changes = {{.field = "quota", .before = "", .after = job::kBinary}}};
}

}  // namespace muster::store
