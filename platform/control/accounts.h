// Users, tokens and secrets: the tables by which callers are identified and authorised.
//
// Each change is committed, with its record in the audit log, before it returns. The server decides
// which caller may make which change.
//
// On the EventLoop's thread; what Dependencies refers to must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "store/store.h"

namespace muster::control {

using base::Result;

/// A new token as it is requested.
struct TokenRequest {
  std::string user;
  access::TokenKind kind = access::TokenKind::kApi;
  std::string description;
  access::Role ceiling = access::Role::kAdmin;
  std::vector<std::string> projects;
  std::optional<std::chrono::seconds> lifetime;  ///< nothing: it does not expire
};

/// Every fault of a request, by field.
std::vector<base::Fault> faults_of_token(const TokenRequest& request);

/// A new token with its text, which is not stored.
struct IssuedToken {
  access::Token token;
  std::string text;
};

class Accounts {
 public:
  /// How long expired tokens are still listed.
  static constexpr std::chrono::hours kExpiredAreKept{24 * 30};

  struct Dependencies {
    base::EventLoop& loop;
    store::Store& store;
    const base::Clock& clock;
    base::RandomSource& random;
    const access::SecretBox& box;
  };
  struct Options {
    std::chrono::milliseconds uses_kept_after{60'000};
    std::chrono::milliseconds expired_looked_for{24 * 3'600'000};
  };

  explicit Accounts(Dependencies parts) : Accounts(parts, Options()) {}
  Accounts(Dependencies parts, Options options) : parts_(parts), options_(options) {}

  /// As loaded from the store. To be called once, before anything else. Logs a warning if the key
  /// does not open the stored secrets.
  void load(std::vector<access::User> users, std::vector<access::Token> tokens,
            std::vector<access::Secret> secrets);

  /// Why jobs cannot run under a Unix account; until it is set, no user can get an account.
  using AccountFaults = std::function<std::vector<base::Fault>(const std::string& account)>;
  void check_accounts_by(AccountFaults faults) { account_faults_ = std::move(faults); }

  /// The Unix account of the user's jobs; empty: none, or the user does not exist.
  std::string unix_account_of(const std::string& user) const;

  // Callers.

  /// The identity that a token's text belongs to. An invitation has an identity, too; the server
  /// decides what it permits. Records the use of the token, which is stored with the next change or
  /// within a minute.
  ///
  /// Errors: kRefused, with the same message for every invalid token, except an expired token and a
  /// disabled user.
  Result<access::Identity> identify(std::string_view token_text, const std::string& address);

  // Users.

  std::vector<access::User> users() const;  ///< by name
  /// kNotFound with the nearest name.
  Result<access::User> user(const std::string& name) const;
  /// kInvalid with every fault; kConflict: the name is taken.
  Result<access::User> create_user(access::User user, const access::Actor& by);
  /// Replaces the user of this name, but keeps the date.
  Result<access::User> set_user(access::User user, const access::Actor& by);
  /// Removes the user with all of its tokens.
  Result<void> remove_user(const std::string& name, const access::Actor& by);

  // Tokens.

  /// kNotFound: an unknown user; kInvalid: an invalid lifetime; kExhausted: the user has too many
  /// tokens.
  Result<IssuedToken> issue(const TokenRequest& request, const access::Actor& by);
  /// A session for the user of a token. An invitation is used up; any other token stays valid. The
  /// login of an API token yields another API token.
  Result<IssuedToken> log_in(const access::Identity& who, const std::string& description,
                             std::chrono::seconds lifetime, const access::Actor& by);
  /// The tokens of `user`, or all tokens; newest first. Expired tokens are listed for 30 days.
  std::vector<access::Token> tokens(const std::optional<std::string>& user) const;
  Result<access::Token> token(const std::string& id) const;
  /// kNotFound. The token is invalid from the next request on.
  Result<void> revoke(const std::string& id, const access::Actor& by);

  // The audit log, newest first.

  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) const;

  // Secrets.

  std::vector<access::Secret> secrets(const std::string& project) const;  ///< by name, sealed
  /// Adds or replaces a secret. kInvalid: an invalid name, or a value that is empty or over 64 KiB.
  Result<access::Secret> set_secret(const std::string& project, const std::string& name,
                                    std::string_view value, const access::Actor& by);
  Result<void> remove_secret(const std::string& project, const std::string& name,
                             const access::Actor& by);
  /// The value, for the start of a job. kNotFound; kRefused: it was sealed with another key.
  Result<std::string> open_secret(const std::string& project, const std::string& name) const;
  bool has_secret(const std::string& project, const std::string& name) const;
  /// Seals a value that the caller stores itself, under a name that is_secret_name() refuses.
  /// open() is kRefused for any other project or name.
  std::string seal(std::string_view value, const std::string& project, const std::string& name);
  Result<std::string> open(std::string_view sealed, const std::string& project,
                           const std::string& name) const;
  /// Adds to the commit that removes a project the removal of its secrets and of the roles in it.
  /// Changes nothing yet.
  void forget_project(const std::string& project, store::Batch& batch) const;
  /// The commit of forget_project() has succeeded.
  void project_is_gone(const std::string& project);

 private:
  void try_key() const;
  Result<void> keep(store::Batch batch);
  void note_use(access::Token& token, const std::string& address, base::Time now);
  void keep_uses_soon();
  void drop_long_expired();
  Result<void> check_room_for_token(const std::string& user) const;
  Result<IssuedToken> make(const TokenRequest& request, std::optional<base::Time> until,
                           const std::string& action, std::vector<std::string> gone,
                           const access::Actor& by);
  std::vector<base::Fault> faults_of(const access::User& user, const std::string& account) const;
  /// The error for any invalid token. It reveals nothing to a caller who tries tokens.
  static base::Error not_valid();
  base::Error no_secret(const std::string& project, const std::string& name) const;
  access::AuditRecord record(const access::Actor& by, std::string action, std::string target,
                             std::vector<access::FieldChange> changes,
                             std::string project = {}) const;

  Dependencies parts_;
  Options options_;
  std::map<std::string, access::User> users_;
  std::map<std::string, access::Token> tokens_;  ///< by id
  std::map<store::SecretName, access::Secret> secrets_;
  AccountFaults account_faults_;
  std::set<std::string> used_;  ///< tokens whose last use is not stored yet
  base::EventLoop::Interest use_timer_;
  base::EventLoop::Interest expiry_timer_;
};

/// Whether `user` may submit a job now that it ordered earlier. `line`: the project of the job and
/// those above it. `server_owner`: the account of the server, which has no user.
///
/// Errors: kRefused: the user is gone or disabled, or has lost the role that the job needs.
Result<void> may_submit(const Accounts& accounts, const std::string& user,
                        const std::string& server_owner, const job::JobSpec& spec,
                        const std::vector<std::string>& line);

}  // namespace muster::control
