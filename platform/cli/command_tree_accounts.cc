// login, context, user, token, secret, audit: who works with a server, and what they may do.
#include "cli/command_parts.h"

namespace muster::cli {

namespace {

const std::vector<std::string> kRoles{"none", "viewer", "member", "admin"};

Flags role_flags() {
  return {{.name = "--role",
           .value = "ROLE",
           .help = "in every project; an admin decides over the server, too (default: none)",
           .choices = kRoles,
           .offer = Offer::kChoices},
          {.name = "--project",
           .value = "PROJECT=ROLE",
           .help = "viewer, member or admin of a project and those below it; none: no more",
           .repeats = true}};
}

Flags secret_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "whose secret it is (default: the project in use)",
           .offer = Offer::kProjects}};
}

Flags ignore_missing_flag(const std::string& what) {
  return {{.name = "--ignore-missing", .help = what + " that is not there is no error"}};
}

Command login() {
  return {.name = "login",
          .help = "log in to a server that others share, and use it from now on",
          .positionals = {.name = "https://HOST[:PORT]", .least = 1, .most = 1},
          .flags = {{.name = "--name",
                     .value = "CONTEXT",
                     .help = "what this server is called from now on (default: its host)"},
                    {.name = "--fingerprint",
                     .value = "SHA256",
                     .help = "of its certificate, as its admin gave it to you"},
                    {.name = "--ca",
                     .value = "FILE",
                     .help = "trust what these authorities have signed (PEM)",
                     .offer = Offer::kFiles},
                    {.name = "--token-file",
                     .value = "FILE",
                     .help = "the token is in this file; without: it is asked for",
                     .offer = Offer::kFiles},
                    {.name = "--token-stdin", .help = "the token comes on standard input"}},
          .example = "muster login https://lab.example.org"};
}

Command context() {
  return {.name = "context",
          .help = "the servers that you work with: list, use, remove; alone: which is in use",
          .commands = {{.name = "list",
                        .alias = "ls",
                        .help = "all of them, and until when you are logged in",
                        .flags = list_output_flag()},
                       {.name = "use",
                        .help = "commands go to this one from now on",
                        .positionals = one_of(Offer::kContexts),
                        .example = "muster context use local"},
                       {.name = "remove",
                        .alias = "rm",
                        .help = "forget servers; 'muster logout' ends the session there, too",
                        .positionals = some_of(Offer::kContexts)}}};
}

Command user() {
  return {.name = "user",
          .help = "who may work with this server: create, list, get, set, delete, invite",
          .commands = {{.name = "create",
                        .help = "add a user; prints an invitation to log in with, once",
                        .positionals = new_name(),
                        .flags = role_flags() + output_flag(),
                        .example = "muster user create ada --project team-a=member"},
                       {.name = "list",
                        .alias = "ls",
                        .help = "all users and their roles",
                        .flags = list_output_flag()},
                       {.name = "get",
                        .help = "one user: its role in each project",
                        .positionals = one_of(Offer::kUsers),
                        .flags = output_flag()},
                       {.name = "set",
                        .help = "change what is given of a user, and leave the rest",
                        .positionals = one_of(Offer::kUsers),
                        .flags = role_flags() +
                                 Flags{{.name = "--disable",
                                        .help = "none of its tokens is taken any more"},
                                       {.name = "--enable", .help = "they are taken again"}} +
                                 output_flag(),
                        .example = "muster user set ada --project team-b=viewer"},
                       {.name = "delete",
                        .alias = "rm",
                        .help = "remove users with their tokens; their jobs stay",
                        .positionals = some_of(Offer::kUsers),
                        .flags = ignore_missing_flag("a user")},
                       {.name = "invite",
                        .help = "another invitation, where the first was lost or has expired",
                        .positionals = one_of(Offer::kUsers),
                        .flags = output_flag()}},
          .example = "muster user create ada --project team-a=member"};
}

Command token() {
  return {.name = "token",
          .help = "what programs show in your place: create, list, revoke",
          .commands = {
              {.name = "create",
               .help = "make a token; prints it, once",
               .flags = Flags{{.name = "--description",
                               .value = "TEXT",
                               .help = "what it is for, as token list shows it"},
                              {.name = "--ceiling",
                               .value = "ROLE",
                               .help = "it can do no more than this (default: all that you may)",
                               .choices = {"viewer", "member", "admin"},
                               .offer = Offer::kChoices},
                              {.name = "--project",
                               .value = "PROJECT",
                               .help = "it is good for this project and those below it alone",
                               .offer = Offer::kProjects,
                               .repeats = true},
                              {.name = "--expires",
                               .value = "TIME",
                               .help = "how long it is good: 12h, 30d, or never (default: 90d)"},
                              {.name = "--user",
                               .value = "USER",
                               .help = "whose it is; an admin's to say (default: you)",
                               .offer = Offer::kUsers}} +
                        output_flag(),
               .example = "muster token create --description nightly --ceiling member"},
              {.name = "list",
               .alias = "ls",
               .help = "your tokens and sessions: until when, and when last used",
               .flags = Flags{{.name = "--all", .help = "those of every user; an admin's to ask"},
                              {.name = "--user",
                               .value = "USER",
                               .help = "those of this user",
                               .offer = Offer::kUsers}} +
                        list_output_flag()},
              {.name = "revoke",
               .help = "let tokens be good for nothing from now on",
               .positionals = {.name = "ID",
                               .least = 1,
                               .most = some_of(Offer::kTokens).most,
                               .offer = Offer::kTokens}},
          }};
}

Command secret() {
  return {
      .name = "secret",
      .help = "what jobs of a project need and nobody should read: set, list, delete",
      .commands = {
          {.name = "set",
           .help = "keep a secret; its value is asked for, or comes on standard input",
           .positionals = new_name(),
           .flags = secret_project_flag() + Flags{{.name = "--from-file",
                                                   .value = "FILE",
                                                   .help = "its value is the content of this file",
                                                   .offer = Offer::kFiles}},
           .example = "muster secret set API_KEY --project team-a < key.txt"},
          {.name = "list",
           .alias = "ls",
           .help = "the names of a project's secrets, and who set them when",
           .flags = secret_project_flag() + list_output_flag()},
          {.name = "delete",
           .alias = "rm",
           .help = "remove secrets",
           .positionals = {.name = "NAME", .least = 1, .most = some_of(Offer::kNothing).most},
           .flags = secret_project_flag() + ignore_missing_flag("a secret")},
      }};
}

Command audit() {
  return {
      .name = "audit",
      .help = "who changed what, when and from where; newest first",
      .flags = Flags{{.name = "--user",
                      .value = "USER",
                      .help = "only what this user did",
                      .offer = Offer::kUsers},
                     {.name = "--project",
                      .value = "PROJECT",
                      .help = "only in this project",
                      .offer = Offer::kProjects},
                     {.name = "--action",
                      .value = "ACTION",
                      .help = "only this: job.submit, or job for all that is done to jobs"},
                     {.name = "--since",
                      .value = "TIME",
                      .help = "only from then on: 10m ago, or 2026-01-31T12:00:00Z"},
                     {.name = "--limit", .value = "N", .help = "so many at most (default: 100)"}} +
               output_flag(),
      .example = "muster audit --user ada --since 1d"};
}

}  // namespace

std::vector<Command> commands_on_accounts() {
  return {login(),
          {.name = "logout",
           .help = "end the session of a context, and forget it",
           .positionals = {.name = "CONTEXT", .least = 0, .most = 1, .offer = Offer::kContexts}},
          {.name = "whoami",
           .help = "who you are to the server, and what you may do there",
           .flags = output_flag()},
          context(),
          user(),
          token(),
          secret(),
          audit()};
}

std::vector<Command> commands_on_members() {
  return {
      {.name = "members",
       .help = "who has a role in a project",
       .positionals = one_of(Offer::kProjects),
       .flags = list_output_flag()},
      {.name = "grant",
       .help = "give a user a role in a project: viewer, member or admin",
       .positionals = {.name = "NAME USER ROLE", .least = 3, .most = 3, .offer = Offer::kProjects},
       .example = "muster project grant team-a ada member"},
      {.name = "revoke",
       .help = "take a user's role in a project away",
       .positionals = {.name = "NAME USER", .least = 2, .most = 2, .offer = Offer::kProjects},
       .example = "muster project revoke team-a ada"}};
}

void add_context_flag(Command& command) {
  // These know no server, or say themselves which.
  for (const std::string_view name :
       {"server", "store", "simulate", "completion", "help", "login", "logout", "context"}) {
    if (command.name == name) return;
  }
  command.flags.push_back({.name = "--context",
                           .value = "CONTEXT",
                           .help = "the server that it goes to (see: muster context list)",
                           .offer = Offer::kContexts});
  for (Command& child : command.commands) add_context_flag(child);
}

Flags whose_job_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "whose job is meant, where several projects have one of this name",
           .offer = Offer::kProjects}};
}

}  // namespace muster::cli
