#include "api/account_wire.h"

#include <gtest/gtest.h>

#include "api/test_values.h"
#include "base/test_faults.h"

namespace muster::api {
namespace {

using access::Role;
using access::Secret;
using access::Token;
using access::TokenKind;
using access::User;
using base::Texts;

TEST(TokenRequestWire, ReportsFaultsOfValuesBesideFaultsOfForm) {
  const auto read = token_request_from_json(
      R"({"ceiling":"boss","lifetime_s":-1})", [](const TokenRequest& request) {
        EXPECT_EQ(request.lifetime, std::chrono::seconds(-1));
        return std::vector<base::Fault>{{.field = "lifetime", .what = "is short"}};
      });

  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().faults.size(), 2U);
  EXPECT_EQ(read.error().faults[0].field, "ceiling");
  EXPECT_EQ(read.error().faults[1].field, "lifetime_s");
}

TEST(TokenRequestWire, ANumberThatIsTooLargeIsOutOfRange) {
  for (const char* const lifetime : {"1e18", "99999999999999999999"}) {
    const auto read = token_request_from_json(R"({"lifetime_s":)" + std::string(lifetime) + "}");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().faults[0].what, "is out of range; give 1 to 3153600000") << lifetime;
  }
}

User full_user() {
  return {.name = "ada@example.org",
          .server_role = Role::kViewer,
          .projects = {{"speech", Role::kAdmin}, {"vision", Role::kMember}},
          .disabled = true,
          .created = time_at(1)};
}

/// Without its hash, which is never sent.
Token full_token() {
  return {.id = "abcdefghijkl",
          .user = "ada",
          .kind = TokenKind::kSession,
          .description = "laptop \xFF",
          .ceiling = Role::kMember,
          .projects = {"speech", "vision"},
          .created = time_at(1),
          .expires = time_at(2),
          .last_used = time_at(3),
          .last_address = "10.0.0.7"};
}

Secret full_secret() {
  return {.project = "vision",
          .name = "API_KEY",
          .created = time_at(1),
          .changed = time_at(2),
          .changed_by = "ada"};
}

access::AuditRecord full_record_of_audit() {
  return {.number = 7,
          .time = time_at(1),
          .actor = {.user = "ada", .address = "10.0.0.7", .token = "abc", .request = "r1"},
          .action = "user.set",
          .target = "bob",
          .project = "vision",
          .changes = {{.field = "projects.vision", .before = "", .after = "member"}}};
}

TEST(WhoAmIWire, ReadsBackEveryField) {
  const WhoAmI full{.user = "ada",
                    .server_role = Role::kViewer,
                    .projects = {{"vision", Role::kAdmin}},
                    .token = "abcdefghijkl",
                    .ceiling = Role::kMember,
                    .expires = time_at(5),
                    .address = "10.0.0.7"};
  for (const WhoAmI& who : {full, WhoAmI{.user = "root", .address = "local"}}) {
    const auto read = whoami_from_json(whoami_to_json(who));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, who);
  }
}

TEST(UserWire, ReadsBackEveryField) {
  EXPECT_EQ(*user_from_json(user_to_json(full_user())), full_user());
  const std::vector<User> users{full_user(), {.name = "bob"}};
  EXPECT_EQ(*users_from_json(users_to_json(users)), users);
  EXPECT_EQ(users_to_json({}), R"({"users":[]})");
}

TEST(UserWire, HasTheDocumentedShape) {
  EXPECT_EQ(user_to_json(full_user()),
            R"({"name":"ada@example.org","server_role":"viewer",)"
            R"("projects":{"speech":"admin","vision":"member"},"disabled":true,)"
            R"("created":"1970-01-01T00:00:00.000000001Z"})");
}

TEST(UserWire, ANewUserNeedsOnlyAName) {
  EXPECT_EQ(*user_request_from_json(R"({"name":"ada"})"), User{.name = "ada"});
  EXPECT_EQ(*user_request_from_json(R"({"name":"ada","created":"yesterday","disabled":null})"),
            User{.name = "ada"});
}

TEST(UserWire, ReportsEveryFaultByItsPath) {
  EXPECT_EQ(faults_of(user_request_from_json(
                R"({"server_role":"root","projects":{"a":"owner","b":1},"disable":true})")),
            (Texts{"name is missing",
                   "server_role 'root' is invalid: expected one of none, viewer, member, admin",
                   "projects.a 'owner' is invalid: expected one of none, viewer, member, admin",
                   "projects.b must be text, not a whole number",
                   "disable is not a field; did you mean 'disabled'?"}));
}

TEST(UserChange, OmitsUnchangedFields) {
  EXPECT_EQ(user_change_to_json({}), "{}");
  EXPECT_EQ(*user_change_from_json("{}"), UserChange{});
  EXPECT_EQ(changed(full_user(), {}), full_user());
}

TEST(UserChange, ChangesTheUserAsRequested) {
  const UserChange change{.server_role = Role::kNone,
                          .projects = {{"speech", Role::kNone}, {"text", Role::kViewer}},
                          .disabled = false,
                          .account = "ada-l"};
  EXPECT_EQ(*user_change_from_json(user_change_to_json(change)), change);

  User expected = full_user();
  expected.server_role = Role::kNone;
  expected.projects = {{"text", Role::kViewer}, {"vision", Role::kMember}};
  expected.disabled = false;
  expected.account = "ada-l";
  EXPECT_EQ(changed(full_user(), change), expected);
}

TEST(UserChange, RefusesANewName) {
  EXPECT_EQ(faults_of(user_change_from_json(R"({"name":"b","server_role":7})")),
            (Texts{"server_role must be text, not a whole number", "name is not a field"}));
}

TEST(TokenWire, ReadsBackEveryField) {
  const std::vector<Token> tokens{full_token(), {.id = "x", .user = "bob"}};
  EXPECT_EQ(*tokens_from_json(tokens_to_json(tokens)), tokens);
  EXPECT_EQ(tokens_to_json({}), R"({"tokens":[]})");
}

TEST(TokenWire, DoesNotContainTheHash) {
  Token token = full_token();
  token.hash = "0123456789abcdef0123456789abcdef";
  const std::string expected = tokens_to_json({full_token()});
  EXPECT_EQ(tokens_to_json({token}), expected);
  EXPECT_EQ(expected,
            R"({"tokens":[{"id":"abcdefghijkl","user":"ada","kind":"session",)"
            R"("description":{"base64":"bGFwdG9wIP8="},"ceiling":"member",)"
            R"("projects":["speech","vision"],"created":"1970-01-01T00:00:00.000000001Z",)"
            R"("expires":"1970-01-01T00:00:00.000000002Z",)"
            R"("last_used":"1970-01-01T00:00:00.000000003Z","last_address":"10.0.0.7"}]})");
}

TEST(TokenRequest, ReadsBackEveryField) {
  const TokenRequest full{.user = "ada",
                          .description = "ci",
                          .ceiling = Role::kViewer,
                          .projects = {"vision"},
                          .lifetime = std::chrono::hours(1)};
  EXPECT_EQ(*token_request_from_json(token_request_to_json(full)), full);
  EXPECT_EQ(*token_request_from_json(token_request_to_json({})), TokenRequest{});
  EXPECT_EQ(*token_request_from_json("{}"), TokenRequest{});
}

TEST(TokenRequest, ReportsEveryFaultByItsPath) {
  EXPECT_EQ(faults_of(token_request_from_json(
                R"({"lifetime_s":"30d","ceiling":"all","projects":"vision","hash":"x"})")),
            (Texts{"ceiling 'all' is invalid: expected one of none, viewer, member, admin",
                   "projects must be a list of texts, not text",
                   "lifetime_s must be a whole number, not text", "hash is not a field"}));
}

TEST(NewTokenWire, ContainsTheTextBesideTheToken) {
  const NewToken made{.token = full_token(), .text = "muster_a_b"};
  EXPECT_EQ(*new_token_from_json(new_token_to_json(made)), made);
  EXPECT_TRUE(new_token_to_json(made).ends_with(R"(},"text":"muster_a_b"})"));
  EXPECT_EQ(faults_of(new_token_from_json("{}")), (Texts{"token is missing", "text is missing"}));
}

TEST(NewUserWire, ReadsBackUnchanged) {
  const NewUser made{.user = full_user(),
                     .invitation = {.token = full_token(), .text = "muster_a_b"}};
  const auto read = new_user_from_json(new_user_to_json(made));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, made);
}

TEST(MembersWire, ReadsBackUnchanged) {
  const std::map<std::string, Role> members{{"ada", Role::kAdmin}, {"bob", Role::kViewer}};
  EXPECT_EQ(members_to_json(members),
            R"({"members":[{"user":"ada","role":"admin"},{"user":"bob","role":"viewer"}]})");
  EXPECT_EQ(*members_from_json(members_to_json(members)), members);
  EXPECT_EQ(*role_from_json(role_to_json(Role::kMember)), Role::kMember);
  EXPECT_EQ(faults_of(role_from_json("{}")), Texts{"role is missing"});
}

TEST(SecretWire, ReadsBackWithoutTheSealedValue) {
  Secret sealed = full_secret();
  sealed.sealed = "sealed bytes";
  EXPECT_EQ(*secret_from_json(secret_to_json(sealed)), full_secret());
  EXPECT_EQ(*secrets_from_json(secrets_to_json({sealed})), std::vector{full_secret()});
  EXPECT_EQ(secret_to_json(sealed),
            R"({"project":"vision","name":"API_KEY","created":"1970-01-01T00:00:00.000000001Z",)"
            R"("changed":"1970-01-01T00:00:00.000000002Z","changed_by":"ada"})");
}

TEST(SecretValueWire, AcceptsAnyBytes) {
  EXPECT_EQ(secret_value_to_json("s3cret"), R"({"value":"s3cret"})");
  for (const std::string& value : {std::string("s3cret\n"), kBinary, std::string()}) {
    EXPECT_EQ(*secret_value_from_json(secret_value_to_json(value)), value);
  }
}

TEST(SecretValueWire, FaultsDoNotContainTheValue) {
  for (const char* text :
       {R"({"valeu":"s3cret"})", R"({"value":["s3cret"]})", R"({"value":{"s":"s3cret"}})",
        R"({"value":{"base64":"s3cret!"}})", R"({"value":"s3cret)", R"("s3cret")",
        R"({"value":"s3cret","more":"s3cret"})"}) {
    const auto value = secret_value_from_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().to_string().find("s3cret"), std::string::npos)
        << value.error().to_string();
  }
}

TEST(AuditWire, ReadsBackEveryField) {
  const std::vector<access::AuditRecord> records{full_record_of_audit(),
                                                 {.number = 6, .action = "token.revoke"}};
  const auto read = audit_from_json(audit_to_json(records));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, records);
}

TEST(AuditWire, HasTheDocumentedShape) {
  EXPECT_EQ(audit_to_json({full_record_of_audit()}),
            R"({"records":[{"number":7,"time":"1970-01-01T00:00:00.000000001Z","user":"ada",)"
            R"("address":"10.0.0.7","token":"abc","request":"r1","action":"user.set",)"
            R"("target":"bob","project":"vision",)"
            R"("changes":[{"field":"projects.vision","before":"","after":"member"}]}]})");
}

TEST(AuditQuery, ReadsBackEveryField) {
  const access::AuditQuery full{.user = "ada",
                                .project = "vision",
                                .action = "job",
                                .since = time_at(1),
                                .before = 1'000'000'000'000,
                                .limit = 7};
  const auto read = audit_query_from_parameters(audit_query_parameters(full));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(audit_query_parameters(*read), audit_query_parameters(full));
  EXPECT_EQ(audit_query_parameters(full).size(), 6U);
  EXPECT_TRUE(audit_query_parameters({}).empty());
}

TEST(AuditQuery, ReportsEveryFaultAtOnce) {
  EXPECT_EQ(faults_of(audit_query_from_parameters(
                {{"usr", "ada"}, {"since", "yesterday"}, {"before", "-1"}, {"limit", "0"}})),
            (Texts{"before '-1' is not the number of a record",
                   "limit '0' is not a number of records; give 1 to 1000",
                   "since 'yesterday' is not a time such as 2026-01-31T12:34:56Z",
                   "usr is not a parameter; did you mean 'user'?"}));
  for (const char* limit : {"1001", "-1", "", "ten", "10 ", "99999999999"}) {
    EXPECT_FALSE(audit_query_from_parameters({{"limit", limit}})) << limit;
  }
  EXPECT_TRUE(audit_query_from_parameters({{"limit", "1000"}}));
}

}  // namespace
}  // namespace muster::api
