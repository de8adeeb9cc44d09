package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Combines the verdicts on the trades and checks the margin of the position they leave.
 *
 * Margins follow FINRA Rule 4210 (c): a quarter of what is held long, 30 % of what is owed short.
 */
public class Handler extends AbstractHandler {
    private static final long LONG_PERCENT = 25, SHORT_PERCENT = 30;

    /** Answers the list of the checks' results with a verdict on the portfolio; money in cents. */
    @Override
    public IResponse Handle(IRequest request) {
        List<Map<String, Object>> results = Json.read(request.getBody());
        Map<String, Object> market = results.stream()
            .filter(result -> result.get("check").equals("marketdata")).findFirst().orElseThrow();
        Map<String, Object> quotes = Finra.map(market, "quotes_cents");
        Map<String, Object> moves = Finra.map(market, "moves");
        Map<String, Set<String>> faults = faults(results);
        Set<String> rejected = new TreeSet<>();
        faults.values().forEach(rejected::addAll);
        long held = 0, owed = 0;
        for (Map.Entry<String, Long> each : position(moves, rejected).entrySet()) {
            long value = each.getValue() * (Long) quotes.get(each.getKey());
            held += Math.max(value, 0);
            owed += Math.max(-value, 0);
        }
        long equity = (Long) market.get("cash_cents") + held - owed;
        long required = (LONG_PERCENT * held + SHORT_PERCENT * owed + 99) / 100;
        Map<String, Integer> counts = new TreeMap<>();
        faults.forEach((check, trades) -> counts.put(check, trades.size()));
        return Finra.answer(
            "trades", moves.size(),
            "rejected", List.copyOf(rejected),
            "faults", counts,
            "long_cents", held,
            "short_cents", owed,
            "equity_cents", equity,
            "required_cents", required,
            "margin_satisfied", equity >= required,
            "valid", rejected.isEmpty() && equity >= required
        );
    }

    /** Check to trades with a fault; in a larger finra several tasks make the same check. */
    private static Map<String, Set<String>> faults(List<Map<String, Object>> results) {
        Map<String, Set<String>> merged = new HashMap<>();
        for (Map<String, Object> result : results) {
            Set<String> known = merged.computeIfAbsent((String) result.get("check"), each -> new TreeSet<>());
            known.addAll(Finra.map(result, "faults").keySet());
        }
        return merged;
    }

    /** The net shares per symbol that the accepted trades leave. */
    private static Map<String, Long> position(Map<String, Object> moves, Set<String> rejected) {
        Map<String, Long> shares = new HashMap<>();
        for (Map.Entry<String, Object> each : moves.entrySet()) {
            if (!rejected.contains(each.getKey())) {
                List<?> move = (List<?>) each.getValue();
                shares.merge((String) move.get(0), (Long) move.get(1), Long::sum);
            }
        }
        return shares;
    }
}
