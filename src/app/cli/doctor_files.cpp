// SPDX-License-Identifier: Apache-2.0
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/api/access.hpp"
#include "app/cli/doctor_checks.hpp"
#include "core/age.hpp"
#include "core/what_of.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

constexpr mode_t others_write = S_IWOTH | S_IWGRP;
constexpr mode_t others_read = S_IROTH;
constexpr Duration soon = 24h * 14;

struct Closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  const int size =
      std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);  // NOLINT: vararg by design
  return {text.data(), static_cast<std::size_t>(size)};
}

/// Who else may write it, or, when it is secret, read it.
void check_mode(const std::string& what, const std::string& path, bool secret, Findings& findings) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    findings.bad(what, path + " is not there", "make it, or change the configuration");
    return;
  }
  const std::string mode = path + " has the mode " + octal(found.st_mode);
  if ((found.st_mode & others_write) != 0) {
    findings.bad(what, mode + ": others may change it", "chmod go-w " + path);
  } else if (secret && (found.st_mode & others_read) != 0) {
    findings.bad(what, mode + ": everybody may read it", "chmod 600 " + path);
  } else {
    findings.ok(what, mode);
  }
}

std::unique_ptr<std::FILE, Closer> open_file(const std::string& path) {
  return std::unique_ptr<std::FILE, Closer>(std::fopen(path.c_str(), "re"));
}

void check_certificate(const config::DaemonConfig::Server& server, Findings& findings) {
  const std::unique_ptr<std::FILE, Closer> file = open_file(server.tls_certificate);
  const std::unique_ptr<X509, Closer> certificate(
      file == nullptr ? nullptr : PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    findings.bad("certificate", server.tls_certificate + " is no certificate in PEM form, or not readable",
                 "openssl x509 -in " + server.tls_certificate + " -noout -dates");
    return;
  }
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1) {
    findings.bad("certificate", "the end of its time cannot be read", "make it again");
    return;
  }
  const Duration left = 24h * days + 1s * seconds;
  if (left <= 0s) {
    findings.bad("certificate", "it has expired " + format_about(-left) + " ago",
                 "renew it, then: systemctl reload postrider");
  } else if (left < soon) {
    findings.bad("certificate", "it expires in " + format_about(left),
                 "renew it, then: systemctl reload postrider");
  } else {
    findings.ok("certificate", "it is valid for " + std::to_string(days) + " days more");
  }
  const std::unique_ptr<std::FILE, Closer> key_file = open_file(server.tls_key);
  const std::unique_ptr<EVP_PKEY, Closer> key(
      key_file == nullptr ? nullptr : PEM_read_PrivateKey(key_file.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    findings.bad("key", server.tls_key + " is not the key of this certificate, or not readable",
                 "set server.tls-key to the one that belongs to it");
  } else {
    check_mode("key", server.tls_key, true, findings);
  }
}

void check_tokens(const std::string& path, Findings& findings) {
  check_mode("token file", path, false, findings);
  try {
    std::string expired;
    for (const api::TokenRecord& token : api::read_tokens(path)) {
      if (token.expires && *token.expires < Clock::system().now())
        expired += (expired.empty() ? "" : ", ") + token.name;
    }
    if (!expired.empty()) {
      findings.note("tokens", "expired: " + expired,
                    "end each: postrider token revoke --file " + path + " --name NAME");
    }
  } catch (const std::exception& error) {
    findings.bad(
        "token file", what_of(error),
        "mend it, or make a new one: postrider token create --file " + path + " --name NAME --role ROLE");
  }
}

/// Where locks and shared memory do not work as SQLite needs them. By the kernel's numbers.
std::string network_file_system(const std::string& path) {
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) return {};
  switch (static_cast<std::uint32_t>(found.f_type)) {
    case 0x6969:
      return "NFS";
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42:
      return "SMB";
    case 0x01021997:
      return "9p";
    case 0x5346414F:
      return "AFS";
    case 0x00C36400:
      return "Ceph";
    case 0x65735546:
      return "FUSE";
    default:
      return {};
  }
}

}  // namespace

void check_sqlite(const Database& database, Inspector& inspector, Findings& findings) {
  const std::string path = sqlite_file(database.url).value_or("");
  findings.ok("engine", "SQLite " + inspector.text("select sqlite_version()"));
  const std::string journal = inspector.text("pragma journal_mode");
  if (journal == "wal") {
    findings.ok("journal_mode", "wal");
  } else {
    findings.bad("journal_mode", "it is " + journal + ": readers and the writer wait for each other",
                 "sqlite3 " + path + " 'pragma journal_mode = wal'");
  }
  if (database.options.sqlite_full_sync) {
    findings.ok("synchronous", "full");
  } else {
    findings.bad("synchronous", "it is normal: a power cut may lose what was committed last",
                 "storage.sqlite-full-sync = true in the configuration");
  }
  if (database.options.sqlite_busy_timeout < 1s) {
    findings.bad("busy timeout", "it is below a second: writers give up while others write",
                 "storage.sqlite-busy-timeout-ms = 10000 in the configuration");
  } else {
    findings.ok("busy timeout", format_age(database.options.sqlite_busy_timeout));
  }
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  if (const std::string network = network_file_system(folder); !network.empty()) {
    findings.bad("file system", folder + " is on " + network + ", where locks are not to be trusted",
                 "put the file on a local disk, or use PostgreSQL");
  } else {
    findings.ok("file system", folder + " is local");
  }
  check_mode("file", path, false, findings);
  std::error_code error;
  const std::uintmax_t wal = std::filesystem::file_size(path + "-wal", error);
  constexpr std::uintmax_t large = std::uintmax_t{1} << 30U;
  if (!error && wal > large) {
    findings.bad("wal", path + "-wal has " + std::to_string(wal >> 20U) + " MiB: some reader never ends",
                 "fuser " + path + " says which processes have it open");
  }
}

void check_files(const std::string& path, const config::DaemonConfig& config, Findings& findings) {
  // A password is what stands between the colon and the @ of a URL.
  const std::string& url = config.storage.url;
  const std::size_t at = url.find('@');
  const std::size_t colon = url.find(':', url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
  const bool has_password = at != std::string::npos && colon != std::string::npos && colon < at;
  check_mode("configuration", path, has_password, findings);
  if (!config.server.token_file.empty()) check_tokens(config.server.token_file, findings);
  if (!config.server.tls_certificate.empty()) check_certificate(config.server, findings);
}

}  // namespace postrider::cli
