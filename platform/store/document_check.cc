#include "store/document_check.h"

#include "store/account_document.h"
#include "store/job_document.h"
#include "store/notification_document.h"
#include "store/project_document.h"

namespace muster::store {

using base::Result;

namespace {

Result<std::string> identity_of_job(std::string_view document) {
  MUSTER_TRY(const job::Job job, from_document(document));
  return job.id + " " + job.spec.project + "/" + job.spec.name;
}

Result<std::string> identity_of_project(std::string_view document) {
  MUSTER_TRY(const job::Project project, from_project_document(document));
  return project.name;
}

Result<std::string> identity_of_user(std::string_view document) {
  MUSTER_TRY(const access::User user, from_user_document(document));
  return user.name;
}

Result<std::string> identity_of_token(std::string_view document) {
  MUSTER_TRY(const access::Token token, from_token_document(document));
  return token.id;
}

Result<std::string> identity_of_secret(std::string_view document) {
  MUSTER_TRY(const access::Secret secret, from_secret_document(document));
  return secret.project + "/" + secret.name;
}

Result<std::string> identity_of_subscription(std::string_view document) {
  MUSTER_TRY(const job::Subscription subscription, from_subscription_document(document));
  return subscription.id;
}

Result<std::string> identity_of_delivery(std::string_view document) {
  MUSTER_TRY(const job::Delivery delivery, from_delivery_document(document));
  return delivery.id;
}

Result<std::string> identity_of_record(std::string_view document) {
  MUSTER_TRY(const access::AuditRecord record, from_audit_document(document));
  return record.action + " by " + record.actor.user + " in '" + record.project + "'";
}

constexpr DocumentTable kTables[] = {
    {"job", "job", "id || ' ' || project || '/' || name", identity_of_job},
    {"project", "project", "name", identity_of_project},
    {"account", "user", "name", identity_of_user},
    {"token", "token", "id", identity_of_token},
    {"secret", "secret", "project || '/' || name", identity_of_secret},
    {"subscription", "subscription", "id", identity_of_subscription},
    {"delivery", "delivery", "id", identity_of_delivery},
    {"audit", "record of the audit log", "action || ' by ' || actor || ' in ''' || project || ''''",
     identity_of_record}};

}  // namespace

const std::span<const DocumentTable> kDocumentTables(kTables);

std::string DocumentTable::query() const {
  return std::string("SELECT ") + identity + ", document FROM " + name;
}

void Faults::add(std::string sentence) {
  constexpr size_t kMost = 100;
  if (sentences_.size() < kMost) sentences_.push_back(std::move(sentence));
  if (sentences_.size() == kMost) sentences_.back() = "there are more faults than are listed here";
}

void Faults::check(const DocumentTable& table, std::string_view identity,
                   std::string_view document) {
  const auto found = table.identity_of(document);
  const std::string row = std::string(table.noun) + " " + std::string(identity);
  if (!found) {
    add(row + ": " + found.error().what);
  } else if (*found != identity) {
    add(row + ": its row holds the document of " + *found);
  }
}

}  // namespace muster::store
