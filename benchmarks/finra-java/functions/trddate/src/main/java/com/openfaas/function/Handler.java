package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.time.LocalDate;
import java.util.Map;

/** Checks the dates (FIX tags 75 and 64, TradeDate and SettlDate) of every trade. */
public class Handler extends AbstractHandler {
    @Override
    public IResponse Handle(IRequest request) {
        Map<String, Object> portfolio = Json.read(request.getBody());
        LocalDate asOf = LocalDate.parse((String) portfolio.get("as_of"));
        return Finra.check("trddate", portfolio, trade -> fault(trade, asOf));
    }

    /** The first rule that the trade's dates break on the day `asOf`, or null. */
    private static String fault(Map<String, Object> trade, LocalDate asOf) {
        LocalDate traded = Calendar.parsed((String) trade.get("TradeDate"));
        LocalDate settled = Calendar.parsed((String) trade.get("SettlDate"));
        if (traded == null || settled == null) {
            return "not-a-date";
        }
        if (traded.isAfter(asOf)) {
            return "in-the-future";
        }
        if (!Calendar.isBusinessDay(traded)) {
            return "market-closed";
        }
        LocalDate due = Calendar.plusBusinessDays(traded, Calendar.settlementDays(traded));
        return settled.equals(due) ? null : "wrong-settlement";
    }
}
