#include "engine/kubernetes/access.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "engine/kubernetes/exec_credential.h"
#include "engine/kubernetes/server_url.h"
#include "engine/program_runner.h"
#include "http/sockets.h"
#include "http/tls.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::steady_clock;

namespace {

/// The limit for files of certificates, keys and tokens.
constexpr size_t kLongestSecret = 1 << 20;
/// A credential is renewed this long before it expires.
constexpr std::chrono::seconds kBeforeExpiry{20};
constexpr size_t kLongestWordsOfPlugin = 600;

/// The certificates and the key of a connection, as PEM.
struct TlsFiles {
  std::string authorities;
  std::string certificate;
  std::string key;

  bool operator==(const TlsFiles&) const = default;
};

/// The place of the API server; makes a new one when its certificates have changed.
class PlaceKeeper {
 public:
  PlaceKeeper(ServerUrl url, std::string server_name, bool is_unverified,
              std::optional<http::HttpProxy> proxy)
      : url_(std::move(url)),
        server_name_(std::move(server_name)),
        is_unverified_(is_unverified),
        proxy_(std::move(proxy)) {}

  const ServerUrl& url() const { return url_; }
  const http::AsyncPlace& place() const { return place_; }
  /// 0: there is no place yet.
  uint64_t number() const { return number_; }

  Result<void> update(const TlsFiles& files) {
    if (number_ != 0 && files == files_) return {};
    if (!url_.has_tls) {
      place_ = http::TcpPlace{.host = url_.host, .port = url_.port};
    } else {
      const http::TlsEndpoint endpoint{.host = url_.host,
                                       .port = url_.port,
                                       .authorities = files.authorities,
                                       .is_unverified = is_unverified_};
      MUSTER_TRY(http::TlsContext context,
                 files.certificate.empty()
                     ? http::client_context(endpoint)
                     : http::client_context(endpoint,
                                            {.certificate = files.certificate, .key = files.key}));
      place_ = http::TlsPlace{.host = url_.host,
                              .port = url_.port,
                              .context = std::move(context),
                              .server_name = server_name_,
                              .proxy = proxy_};
    }
    files_ = files;
    ++number_;
    return {};
  }

 private:
  ServerUrl url_;
  std::string server_name_;
  bool is_unverified_;
  std::optional<http::HttpProxy> proxy_;
  http::AsyncPlace place_;
  TlsFiles files_;
  uint64_t number_ = 0;
};

Result<std::string> read_pem(const PemSource& source) {
  if (!source.text.empty() || source.file.empty()) return source.text;
  return base::read_file(source.file, kLongestSecret);
}

Result<std::string> read_token(const std::filesystem::path& file) {
  MUSTER_TRY(const std::string text, base::read_file(file, kLongestSecret));
  std::string token(base::trimmed(text));
  const bool is_token = std::all_of(token.begin(), token.end(), [](unsigned char letter) {
    return letter > ' ' && letter < 0x7F;
  });
  if (!token.empty() && is_token) return token;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the file of a token " + base::in_quotes(file.string()) +
                       (token.empty() ? " is empty" : " contains more than a token")};
}

/// Credentials from files and from a plug-in. Both kinds of access are made of this.
class FileAccess : public Access {
 public:
  struct Sources {
    PemSource authorities;
    PemSource certificate;
    PemSource key;
    std::string token;
    std::filesystem::path token_file;
    Impersonation impersonation;
    std::optional<ExecPlugin> plugin;
    ClusterEntry cluster;  ///< for the plug-in
  };

  FileAccess(base::EventLoop& loop, AccessFacts facts, PlaceKeeper place, Sources sources,
             const AccessOptions& options)
      : facts_(std::move(facts)),
        place_(std::move(place)),
        sources_(std::move(sources)),
        environment_(options.environment),
        plugin_patience_(options.plugin_patience),
        reread_after_(options.reread_after),
        programs_(loop, 1) {}

  const AccessFacts& facts() const override { return facts_; }

  /// Reads the files for the first time, so that faults are found when the access is opened.
  Result<void> begin() { return read_files(); }

  void get(Then then) override {
    if (steady_clock::now() - read_at_ >= reread_after_) {
      // A file that is being replaced may be missing for a moment: the last content that was read
      // stays valid.
      static_cast<void>(read_files());
    }
    if (!sources_.plugin || has_valid_credential()) return then(current());
    waiting_.push_back(std::move(then));
    if (waiting_.size() == 1) run_plugin();
  }

  bool reject(uint64_t number) override {
    if (number != number_) return true;
    if (sources_.plugin) {
      credential_.reset();
      return true;
    }
    static_cast<void>(read_files());
    return number != number_;
  }

 private:
  // --- files

  Result<void> read_files() {
    read_at_ = steady_clock::now();
    TlsFiles files;
    MUSTER_TRY(files.authorities, read_pem(sources_.authorities));
    MUSTER_TRY(files.certificate, read_pem(sources_.certificate));
    MUSTER_TRY(files.key, read_pem(sources_.key));
    std::string token = sources_.token;
    if (!sources_.token_file.empty()) {
      MUSTER_TRY(token, read_token(sources_.token_file));
    }
    // The certificate and its key may be replaced one after the other: until they match, the old
    // ones are used.
    if (!sources_.plugin) MUSTER_CHECK(use(files));
    files_ = std::move(files);
    if (token != token_) {
      token_ = std::move(token);
      ++number_;
    }
    return {};
  }

  Result<void> use(const TlsFiles& files) {
    const uint64_t before = place_.number();
    MUSTER_CHECK(place_.update(files));
    if (place_.number() != before) ++number_;
    return {};
  }

  // --- the plug-in

  bool has_valid_credential() const {
    return credential_ && (!credential_->expires ||
                           base::SystemClock().now() + kBeforeExpiry < *credential_->expires);
  }

  void run_plugin() {
    ProgramPlan plan{.argv = {sources_.plugin->command},
                     .environment = exec_environment(
                         environment_, *sources_.plugin,
                         exec_info(*sources_.plugin, sources_.cluster, files_.authorities)),
                     .patience = plugin_patience_};
    plan.argv.insert(plan.argv.end(), sources_.plugin->arguments.begin(),
                     sources_.plugin->arguments.end());
    programs_.run(std::move(plan), [this](const Result<ProgramEnd>& end) { plugin_ended(end); });
  }

  void plugin_ended(const Result<ProgramEnd>& end) {
    auto credential = credential_of(end);
    Result<void> used;
    if (credential) {
      TlsFiles files = files_;
      if (!credential->certificate.empty()) {
        files.certificate = credential->certificate;
        files.key = credential->key;
      }
      used = use(files);
    }
    if (credential && used) {
      credential_ = *std::move(credential);
      ++number_;
      return answer_all(current());
    }
    answer_all(credential ? used.error() : credential.error());
  }

  /// A callback may destroy this object.
  void answer_all(const Result<Credentials>& result) {
    const auto waiting = std::exchange(waiting_, {});
    for (const Then& then : waiting) then(result);
  }

  Result<ExecCredential> credential_of(const Result<ProgramEnd>& end) const {
    const ExecPlugin& plugin = *sources_.plugin;
    const std::string name = "exec plug-in " + base::in_quotes(plugin.command);
    const auto failed = [&](const std::string& what) {
      Error error{.code = ErrorCode::kUnavailable, .what = name + " " + what};
      const std::string hint = base::shortened(base::trimmed(plugin.install_hint), 500);
      error.advice = hint.empty() ? "run it by hand to see why" : hint;
      return error;
    };
    if (!end) return failed("cannot be run: " + end.error().what);
    if (end->was_late) {
      return failed("did not end within " + std::to_string(plugin_patience_.count() / 1000) + " s");
    }
    if (end->code != 0) {
      const std::string words = base::as_utf8(base::trimmed(end->errors));
      return failed("failed" + (words.empty() ? "" : ": " + last_of(words)));
    }
    return read_exec_credential(end->output, plugin);
  }

  static std::string last_of(const std::string& words) {
    if (words.size() <= kLongestWordsOfPlugin) return words;
    return "..." + base::as_utf8(words.substr(words.size() - kLongestWordsOfPlugin));
  }

  // --- the result

  Credentials current() const {
    Credentials now{.place = place_.place(),
                    .path_prefix = place_.url().prefix,
                    .place_number = place_.number(),
                    .number = number_};
    const std::string& token = credential_ ? credential_->token : token_;
    if (!token.empty()) now.headers["authorization"] = "Bearer " + token;
    const Impersonation& as = sources_.impersonation;
    if (!as.user.empty()) now.headers["impersonate-user"] = as.user;
    if (!as.uid.empty()) now.headers["impersonate-uid"] = as.uid;
    if (!as.groups.empty()) now.headers["impersonate-group"] = as.groups.front();
    for (const auto& [key, values] : as.extra) {
      const std::string name = "impersonate-extra-" + http::url_encoded(base::lower_case(key));
      if (!values.empty()) now.headers[name] = values.front();
    }
    return now;
  }

  const AccessFacts facts_;
  PlaceKeeper place_;
  const Sources sources_;
  const std::vector<std::string> environment_;
  const std::chrono::milliseconds plugin_patience_;
  const std::chrono::milliseconds reread_after_;
  TlsFiles files_;
  std::string token_;
  steady_clock::time_point read_at_;
  std::optional<ExecCredential> credential_;
  uint64_t number_ = 0;
  std::vector<Then> waiting_;
  ProgramRunner programs_;  ///< last: its callbacks use the others
};

Error plain_http_refused(const ServerUrl& url) {
  return {.code = ErrorCode::kInvalid,
          .what = "the API server at " + to_string(url) +
                  " would be reached without TLS, over a network",
          .advice = "use its https address; http is accepted for this machine only"};
}

std::string shown(const std::optional<http::HttpProxy>& proxy) {
  if (!proxy) return "";
  return "http://" + http::to_string(http::HostAndPort{.host = proxy->host, .port = proxy->port});
}

std::string method_of(const UserEntry& user) {
  if (user.exec) return "exec plug-in " + base::in_quotes(user.exec->command);
  std::vector<std::string> methods;
  if (user.certificate.is_given()) methods.emplace_back("client certificate");
  if (!user.token.empty() || !user.token_file.empty()) methods.emplace_back("token");
  return methods.empty() ? "none" : base::listed(methods);
}

Result<std::unique_ptr<Access>> opened(std::unique_ptr<FileAccess> access) {
  const auto begun = access->begin();
  if (begun) return std::unique_ptr<Access>(std::move(access));
  Error error = begun.error();
  error.what = access->facts().source + " cannot be used: " + error.what;
  return error;
}

Result<std::unique_ptr<Access>> open_context(base::EventLoop& loop, const ChosenContext& chosen,
                                             const AccessOptions& options) {
  MUSTER_TRY(const ServerUrl url, parse_server_url(chosen.cluster.server));
  if (!url.has_tls && !is_this_machine(url.host)) return plain_http_refused(url);
  std::optional<http::HttpProxy> proxy;
  if (chosen.cluster.proxy_url.empty()) {
    MUSTER_TRY(proxy, proxy_for(url, options.environment));
  } else {
    MUSTER_TRY(proxy, parse_proxy(chosen.cluster.proxy_url));
  }
  const UserEntry& user = chosen.user;
  if (user.exec && user.exec->interactive == ExecPlugin::Interactive::kAlways) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "exec plug-in " + base::in_quotes(user.exec->command) +
                " needs a terminal (interactiveMode: Always), which a server does not have",
        .advice = "use a service account's token, or a client certificate"};
  }
  return opened(std::make_unique<FileAccess>(
      loop,
      AccessFacts{.server = to_string(url),
                  .source = "context " + base::in_quotes(chosen.name) + " of " + chosen.source,
                  .method = method_of(user),
                  .space = chosen.space,
                  .proxy = shown(proxy),
                  .skips_verification = chosen.cluster.skips_verification},
      PlaceKeeper(url, chosen.cluster.tls_server_name, chosen.cluster.skips_verification, proxy),
      FileAccess::Sources{.authorities = chosen.cluster.authorities,
                          .certificate = user.certificate,
                          .key = user.key,
                          .token = user.token,
                          .token_file = user.token_file,
                          .impersonation = user.impersonation,
                          .plugin = user.exec,
                          .cluster = chosen.cluster},
      options));
}

/// Whether this server runs in a pod that may call the API server.
bool is_in_pod(const AccessOptions& options) {
  std::error_code ignored;
  return !variable_in(options.environment, "KUBERNETES_SERVICE_HOST").empty() &&
         std::filesystem::exists(options.service_account / "token", ignored);
}

Result<std::unique_ptr<Access>> open_service_account(base::EventLoop& loop,
                                                     const AccessOptions& options) {
  const std::string host = variable_in(options.environment, "KUBERNETES_SERVICE_HOST");
  const std::string port = variable_in(options.environment, "KUBERNETES_SERVICE_PORT");
  const bool is_v6 = host.find(':') != std::string::npos;
  MUSTER_TRY(const ServerUrl url, parse_server_url("https://" + (is_v6 ? "[" + host + "]" : host) +
                                                   (port.empty() ? "" : ":" + port)));
  MUSTER_TRY(const std::string space,
             base::read_file(options.service_account / "namespace", kLongestSecret));
  return opened(std::make_unique<FileAccess>(
      loop,
      AccessFacts{.server = to_string(url),
                  .source = "the service account of this pod",
                  .method = "token",
                  .space = std::string(base::trimmed(space))},
      // client-go does not use the proxy of the environment here either.
      PlaceKeeper(url, "", false, std::nullopt),
      FileAccess::Sources{.authorities = {.file = options.service_account / "ca.crt"},
                          .token_file = options.service_account / "token"},
      options));
}

}  // namespace

Result<std::unique_ptr<Access>> open_access(base::EventLoop& loop, AccessOptions options) {
  const std::string variable = variable_in(options.environment, "KUBECONFIG");
  const bool is_named =
      !options.kubeconfig.empty() || !variable.empty() || !options.context.empty();
  if (!is_named && is_in_pod(options)) return open_service_account(loop, options);
  if (options.kubeconfig.empty()) {
    options.kubeconfig = kubeconfig_paths(variable, variable_in(options.environment, "HOME"));
  }
  MUSTER_TRY(const Kubeconfig config, load_kubeconfig(options.kubeconfig));
  MUSTER_TRY(const ChosenContext chosen, choose_context(config, options.context));
  return open_context(loop, chosen, options);
}

}  // namespace muster::engine::kubernetes
