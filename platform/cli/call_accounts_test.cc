// Command lines on contexts, users, tokens, secrets and the audit log, as typed commands.
#include <gtest/gtest.h>

#include <limits>

#include "cli/accounts/accounts.h"
#include "cli/cli.h"
#include "cli/jobs/jobs.h"
#include "cli/logs/logs.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

using access::Role;

TEST(Login, TakesAServerAndItsTrustSettings) {
  const auto command = parsed_in_team_a<accounts::LoginCommand>(
      {"login", "https://lab", "--name", "l", "--fingerprint", "SHA256:" + std::string(64, 'A'),
       "--token-file", "t"});

  EXPECT_EQ(command.server, "https://lab:7443");
  EXPECT_EQ(command.name, "l");
  EXPECT_EQ(command.fingerprint, std::string(64, 'a'));
  EXPECT_EQ(command.token_file, "/home/ada/t");
  EXPECT_FALSE(command.token_stdin);
  EXPECT_EQ(
      parsed_in_team_a<accounts::LoginCommand>({"login", "https://lab", "--ca", "ca.pem"}).ca_file,
      "/home/ada/ca.pem");
}

TEST(Login, TakesNoTokenAsAWord) {
  // Other users of the machine can see the words of a command line.
  for (const Words& words : {Words{"login", "https://lab", "muster_token"},
                             Words{"login", "https://lab", "--token", "muster_token"}}) {
    EXPECT_NE(refusal_in_team_a(words), "accepted");
  }
}

TEST(Login, ReportsEveryFaultAtOnce) {
  const std::string text =
      refusal_in_team_a({"login", "http://lab", "--name", "local", "--fingerprint", "zz", "--ca",
                         "f", "--token-stdin", "--token-file", "f"});

  for (const char* part :
       {"'http://lab' is not the address of a server", "--fingerprint: is invalid",
        "'local' cannot be the name", "--ca: cannot be used with --fingerprint",
        "--token-stdin: cannot be used with --token-file"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "lacks " << part;
  }
  EXPECT_NE(refusal_in_team_a({"login"}).find("name the server"), std::string::npos);
}

TEST(Context, WithoutASubcommandPrintsTheCurrentContext) {
  EXPECT_NO_THROW(parsed_in_team_a<accounts::ContextShowCommand>({"context"}));
  EXPECT_EQ(parsed_in_team_a<accounts::ContextUseCommand>({"context", "use", "lab"}).name, "lab");
  EXPECT_EQ(parsed_in_team_a<accounts::ContextRemoveCommand>({"context", "rm", "a", "b"}).names,
            (Words{"a", "b"}));
  EXPECT_EQ(
      parsed_in_team_a<accounts::ContextListCommand>({"context", "list", "-o", "names"}).output,
      Output::kNames);
}

TEST(ContextFlag, IsFoundBeforeAndAfterTheCommand) {
  EXPECT_EQ(context_flag(command_tree(), {"list"}), "");
  EXPECT_EQ(context_flag(command_tree(), {"list", "--context", "lab"}), "lab");
  EXPECT_EQ(context_flag(command_tree(), {"--context", "lab", "list"}), "lab");
  EXPECT_EQ(context_flag(command_tree(), {"project", "list", "--context=lab"}), "lab");
  EXPECT_EQ(context_flag(command_tree(), {"run", "--context", "lab", "--", "x", "--context", "y"}),
            "lab");
  EXPECT_EQ(context_flag(command_tree(), {"run", "--", "x", "--context", "y"}), "");
}

TEST(ContextFlag, IsAcceptedByEveryCommandThatConnectsToAServer) {
  for (const Command& command : command_tree().commands) {
    const bool talks = command.name != "server" && command.name != "store" &&
                       command.name != "simulate" && command.name != "completion" &&
                       command.name != "help" && command.name != "login" &&
                       command.name != "logout" && command.name != "context";
    EXPECT_EQ(command.find_flag("--context") != nullptr, talks) << command.name;
    for (const Command& child : command.commands) {
      EXPECT_EQ(child.find_flag("--context") != nullptr, talks) << command.name << child.name;
    }
  }
}

TEST(UserCreate, TakesProjectRolesAndAServerRole) {
  const auto user = parsed_in_team_a<accounts::UserCreateCommand>(
                        {"user", "create", "ada", "--role", "viewer", "--project", "a=member",
                         "--project", "b=admin"})
                        .user;

  EXPECT_EQ(user.name, "ada");
  EXPECT_EQ(user.server_role, Role::kViewer);
  EXPECT_EQ(user.projects,
            (std::map<std::string, Role>{{"a", Role::kMember}, {"b", Role::kAdmin}}));
  EXPECT_NE(
      refusal_in_team_a({"user", "create", "ada", "--project", "a"}).find("is not PROJECT=ROLE"),
      std::string::npos);
  EXPECT_NE(refusal_in_team_a({"user", "create", "ada", "--project", "a=chief"})
                .find("'chief' is invalid: expected one of none, viewer"),
            std::string::npos);
}

TEST(UserSet, ChangesOnlyTheGivenFields) {
  const auto disabled =
      parsed_in_team_a<accounts::UserSetCommand>({"user", "set", "ada", "--disable"}).change;
  EXPECT_EQ(disabled, (api::UserChange{.disabled = true}));
  EXPECT_EQ(parsed_in_team_a<accounts::UserSetCommand>({"user", "set", "ada", "--enable"})
                .change.disabled,
            false);
  const auto out =
      parsed_in_team_a<accounts::UserSetCommand>({"user", "set", "ada", "--project", "a=none"})
          .change;
  EXPECT_EQ(out.projects, (std::map<std::string, Role>{{"a", Role::kNone}}));
  EXPECT_NE(refusal_in_team_a({"user", "set", "ada"}).find("give a property to change"),
            std::string::npos);
  EXPECT_NE(refusal_in_team_a({"user", "set", "ada", "--enable", "--disable"}), "accepted");
}

TEST(UserAccount, IsRemovedByTheWordNoneAndNotByAnEmptyValue) {
  EXPECT_EQ(parsed_in_team_a<accounts::UserSetCommand>({"user", "set", "ada", "--account", "none"})
                .change.account,
            "");
  for (const std::string verb : {"set", "create"}) {
    EXPECT_NE(refusal_in_team_a({"user", verb, "ada", "--account", ""}).find("--account is empty"),
              std::string::npos)
        << verb;
  }
}

TEST(Token, OfAnEmptyUserIsRefused) {
  for (const std::string verb : {"create", "list"}) {
    EXPECT_NE(refusal_in_team_a({"token", verb, "--user", ""}).find("--user is empty"),
              std::string::npos)
        << verb;
  }
}

TEST(ProjectGrant, TakesAProjectAUserAndARole) {
  const auto command = parsed_in_team_a<accounts::MemberGrantCommand>(
      {"project", "grant", "team-a", "ada", "viewer"});
  EXPECT_EQ(command.project, "team-a");
  EXPECT_EQ(command.user, "ada");
  EXPECT_EQ(command.role, Role::kViewer);
  EXPECT_NE(refusal_in_team_a({"project", "grant", "team-a"}).find("USER: is missing"),
            std::string::npos);
  EXPECT_NE(refusal_in_team_a({"project", "grant", "a", "b", "none"}).find("project revoke"),
            std::string::npos);
  EXPECT_EQ(
      parsed_in_team_a<accounts::MemberRevokeCommand>({"project", "revoke", "team-a", "ada"}).user,
      "ada");
}

TEST(TokenCreate, ExpiresAfterNinetyDaysByDefault) {
  const auto lifetime = [](const Words& more) {
    Words words{"token", "create"};
    words.insert(words.end(), more.begin(), more.end());
    return parsed_in_team_a<accounts::TokenCreateCommand>(words).request.lifetime;
  };
  EXPECT_EQ(lifetime({}), std::chrono::hours(90 * 24));
  EXPECT_EQ(lifetime({"--expires", "12h"}), std::chrono::hours(12));
  EXPECT_EQ(lifetime({"--expires", "never"}), std::nullopt);
  EXPECT_NE(refusal_in_team_a({"token", "create", "--expires", "0s"}), "accepted");
  EXPECT_NE(refusal_in_team_a({"token", "create", "--expires", "soon"}), "accepted");
}

TEST(TokenCreate, TakesItsLimits) {
  const auto request = parsed_in_team_a<accounts::TokenCreateCommand>(
                           {"token", "create", "--description", "nightly", "--ceiling", "viewer",
                            "--project", "a", "--project", "b", "--user", "ci"})
                           .request;
  EXPECT_EQ(request.description, "nightly");
  EXPECT_EQ(request.ceiling, Role::kViewer);
  EXPECT_EQ(request.projects, (Words{"a", "b"}));
  EXPECT_EQ(request.user, "ci");
}

TEST(TokenList, CoversOneUserOrAllUsers) {
  EXPECT_EQ(parsed_in_team_a<accounts::TokenListCommand>({"token", "list"}).user, std::nullopt);
  EXPECT_EQ(parsed_in_team_a<accounts::TokenListCommand>({"token", "list", "--user", "ci"}).user,
            "ci");
  EXPECT_TRUE(parsed_in_team_a<accounts::TokenListCommand>({"token", "list", "--all"}).all);
  EXPECT_NE(refusal_in_team_a({"token", "list", "--all", "--user", "ci"}), "accepted");
  EXPECT_NE(refusal_in_team_a({"token", "revoke"}).find("muster token list"), std::string::npos);
}

TEST(Secret, BelongsToTheProjectInUseByDefault) {
  EXPECT_EQ(parsed_in_team_a<accounts::SecretSetCommand>({"secret", "set", "KEY"}).project,
            "team-a");
  EXPECT_EQ(
      parsed_in_team_a<accounts::SecretListCommand>({"secret", "list", "--project", "b"}).project,
      "b");
  EXPECT_EQ(
      parsed_in_team_a<accounts::SecretSetCommand>({"secret", "set", "KEY", "--from-file", "k"})
          .file,
      "/home/ada/k");
  // The value of a secret cannot be given as a word.
  EXPECT_NE(refusal_in_team_a({"secret", "set", "KEY", "value"}), "accepted");
}

TEST(Audit, TakesItsFilters) {
  const auto query =
      parsed_in_team_a<accounts::AuditCommand>({"audit", "--user", "ada", "--project", "a",
                                                "--action", "job", "--since", "1h", "--limit", "7"})
          .query;
  EXPECT_EQ(query.user, "ada");
  EXPECT_EQ(query.project, "a");
  EXPECT_EQ(query.action, "job");
  EXPECT_EQ(query.since, base::FakeClock().now() - std::chrono::hours(1));
  EXPECT_EQ(query.limit, 7);
  EXPECT_EQ(parsed_in_team_a<accounts::AuditCommand>({"audit", "--limit", "0"}).query.limit,
            std::numeric_limits<int>::max());
  EXPECT_NE(refusal_in_team_a({"audit", "--limit", "-1"}), "accepted");
}

TEST(JobCommands, TakeTheProjectInWhichTheNameIsLookedUp) {
  EXPECT_EQ(parsed_in_team_a<jobs::GetCommand>({"get", "a", "--project", "b"}).project, "b");
  EXPECT_EQ(parsed_in_team_a<logs::LogsCommand>({"logs", "a", "--project", "b"}).project, "b");
  EXPECT_EQ(parsed_in_team_a<jobs::StopCommand>({"stop", "a", "--project", "b"}).project, "b");
  EXPECT_EQ(parsed_in_team_a<jobs::DeleteCommand>({"delete", "a", "--project", "b"}).project, "b");
  EXPECT_EQ(parsed_in_team_a<jobs::SuspendCommand>({"suspend", "a", "--project", "b"}).project,
            "b");
  EXPECT_EQ(parsed_in_team_a<jobs::ResumeCommand>({"resume", "a", "--project", "b"}).project, "b");
  EXPECT_EQ(parsed_in_team_a<jobs::ExplainCommand>({"explain", "a", "--project", "b"}).project,
            "b");
  EXPECT_EQ(parsed_in_team_a<jobs::EventsCommand>({"events", "--project", "b"}).project, "b");
  // The project in use is used to submit jobs, and restricts nothing else.
  EXPECT_EQ(parsed_in_team_a<jobs::GetCommand>({"get", "a"}).project, "");
}

}  // namespace

}  // namespace muster::cli
