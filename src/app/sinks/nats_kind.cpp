// SPDX-License-Identifier: Apache-2.0
#if defined(POSTRIDER_WITH_NATS)
#include "postrider/nats_sink.hpp"

#include <utility>

#include "app/sinks/kind.hpp"

namespace postrider::sinks {

Make read_nats(config::Section& section, const Common& common) {
  using namespace std::chrono_literals;
  auto options = with_common<NatsSinkOptions>(common);
  section.secret("url", options.url)
      .text("username", options.username)
      .secret("password", options.password)
      .secret("token", options.token)
      .text("credentials-file", options.credentials_file)
      .flag("tls", options.tls)
      .text("tls-ca", options.tls_ca)
      .text("tls-cert", options.tls_cert)
      .text("tls-key", options.tls_key)
      .text("stream", options.stream)
      .text("subject", options.subject)
      .flag("create-stream", options.create_stream)
      .number("replicas", options.replicas, 1, 5)
      .time("duplicates-seconds", options.duplicates, 1s, 1s, 24h * 30)
      .time("connect-timeout-ms", options.connect_timeout, 1ms, 1ms, 1min);
  section.finish();
  return make_by(nats_sink, std::move(options));
}

}  // namespace postrider::sinks
#endif
