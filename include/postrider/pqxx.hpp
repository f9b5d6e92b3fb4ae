// SPDX-License-Identifier: Apache-2.0
// For programs that talk to PostgreSQL through libpqxx (6.4 or 7). Needs pqxx's headers and the component
// postrider::postgres; postrider.hpp does not include it.
#pragma once

#include <cstddef>
#include <memory>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "postrider/error.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

namespace postgres::detail {
/// The same error that our own connections would throw.
[[nodiscard]] Error error_from(std::string_view what, const std::string& sqlstate, std::string_view message,
                               bool connection_lost);
/// With `$1` for `?`. Throws Error(invalid_argument) unless it has as many placeholders as values.
[[nodiscard]] std::string numbered(std::string_view sql, std::size_t values);
[[nodiscard]] std::string cannot_run(std::string_view sql);
/// Whether it begins with INSERT, UPDATE, DELETE or MERGE.
[[nodiscard]] bool changes_rows(std::string_view sql);
/// `\x` and hex digits: the text form of bytea.
[[nodiscard]] std::string bytea_text(std::string_view bytes);
[[nodiscard]] std::string number_text(double number);
}  // namespace postgres::detail

namespace detail {

class PqxxSession final : public TxSession {
 public:
  explicit PqxxSession(pqxx::transaction_base& work) : work_(work) {
    if (dynamic_cast<pqxx::dbtransaction*>(&work) == nullptr) {
      throw Error(ErrorCode::not_in_transaction, "cannot adopt a pqxx transaction",
                  "a nontransaction commits by itself", "use pqxx::work");
    }
  }

  [[nodiscard]] BackendKind kind() const noexcept override { return BackendKind::postgres; }
  /// pqxx does not tell whether a transaction has ended: the next statement finds out.
  [[nodiscard]] bool active() const noexcept override { return !ended_; }

  Rows execute(std::string_view sql, std::span<const Value> params) override {
    const std::string what = postgres::detail::cannot_run(sql);
    const std::string text = postgres::detail::numbered(sql, params.size());
    std::vector<std::string> texts;
    texts.reserve(params.size());
    std::vector<const char*> values;  // null: NULL
    values.reserve(params.size());
    for (const Value& value : params) {
      if (std::holds_alternative<std::monostate>(value.get())) {
        values.push_back(nullptr);
      } else {
        texts.push_back(std::visit(ToText{}, value.get()));
        values.push_back(texts.back().c_str());
      }
    }
    try {
      // pqxx runs parametrised statements after the end of a transaction as well, where they would commit by
      // themselves; plain ones it refuses. One more round trip, against an event that nobody asked to commit.
      work_.exec("");
      return to_rows(sql, run(text, values));
    } catch (const pqxx::serialization_failure& error) {
      // These two are no sql_error in pqxx 6, and have no sqlstate there.
      throw postgres::detail::error_from(what, "40001", error.what(), false);
    } catch (const pqxx::deadlock_detected& error) {
      throw postgres::detail::error_from(what, "40P01", error.what(), false);
    } catch (const pqxx::sql_error& error) {
      throw postgres::detail::error_from(what, error.sqlstate(), error.what(), false);
    } catch (const pqxx::broken_connection& error) {
      throw postgres::detail::error_from(what, {}, error.what(), true);
    } catch (const pqxx::failure& error) {
      throw postgres::detail::error_from(what, {}, error.what(), false);
    } catch (const pqxx::usage_error& error) {
      // Two mistakes are one type in pqxx; nothing but its text tells them apart.
      if (std::string_view(error.what()).find("still open") != std::string_view::npos) {
        throw Error(ErrorCode::invalid_argument, what,
                    "a stream, pipeline or subtransaction is still open on the pqxx transaction",
                    "complete it first");
      }
      ended_ = true;
      throw Error(ErrorCode::not_in_transaction, what,
                  "the pqxx transaction has been committed or aborted already",
                  "publish before commit(), or begin a new pqxx::work");
    }
  }

  void commit() override {
    throw Error(ErrorCode::unsupported, "cannot commit", "the transaction belongs to pqxx",
                "commit it there");
  }
  void rollback() noexcept override {}

 private:
  struct ToText {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return postgres::detail::number_text(number); }
    std::string operator()(std::string_view text) const {
      if (text.find('\0') != std::string_view::npos) {
        throw Error(ErrorCode::invalid_argument, "cannot bind a parameter",
                    "text must not contain a NUL character", "pass bytes as Blob");
      }
      return std::string(text);
    }
    std::string operator()(Blob blob) const { return postgres::detail::bytea_text(blob.bytes); }
  };

  pqxx::result run(const std::string& sql, const std::vector<const char*>& values) {
#if PQXX_VERSION_MAJOR >= 7
    pqxx::params params;
    for (const char* value : values) {
      if (value == nullptr) {
        params.append();
      } else {
        params.append(std::string_view(value));
      }
    }
#if PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 10
    return work_.exec(sql, params);
#else
    return work_.exec_params(sql, params);
#endif
#else
    return work_.exec_params(sql, pqxx::prepare::make_dynamic_params(values));
#endif
  }

  static Rows to_rows(std::string_view sql, const pqxx::result& result) {
    Rows rows;
    // For a SELECT the server counts the rows that it returned, and pqxx does not tell which command it was.
    const bool changes = result.columns() == 0 || postgres::detail::changes_rows(sql);
    rows.affected = changes ? static_cast<std::int64_t>(result.affected_rows()) : 0;
    for (const auto& row : result) {
      std::vector<Rows::Cell>& cells = rows.rows.emplace_back();
      for (const auto& field : row) {
        if (field.is_null()) {
          cells.emplace_back();
        } else {
          cells.emplace_back(std::string(field.c_str(), field.size()));
        }
      }
    }
    return rows;
  }

  pqxx::transaction_base& work_;
  bool ended_ = false;
};

}  // namespace detail

/// Publishes inside your own pqxx transaction, which must outlive the result and is committed by you:
///
///     pqxx::work work{connection};
///     AdoptedTx tx = pqxx_adopt(work);
///     Staged staged = outbox.publish(tx, event);
///     work.commit();
///     staged.committed();
///
/// Throws Error(not_in_transaction) for a pqxx::nontransaction.
[[nodiscard]] inline AdoptedTx pqxx_adopt(pqxx::transaction_base& work) {
  return AdoptedTx(std::make_unique<detail::PqxxSession>(work));
}

}  // namespace postrider
